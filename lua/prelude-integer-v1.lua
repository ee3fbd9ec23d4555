-- Shared by programs with more integers than they have to be quick about: included where a program says
-- `@include prelude-integer-v1`, after prelude-v1.
-- uint gives the integer that a decimal text of 1..16 digits stands for, or nil where the text is
-- anything else or the integer is outside low..high. high is at most 2^53-1.
-- absent tells whether a key that read as all nil does not exist, rather than being a hash without
-- the fields of a state. TYPE answers a status reply or a plain string, by server and protocol.
local floor = math.floor
local function uint(text, low, high)
  if not text or #text > 16 or not find(text, '^%d+$') then return nil end
  local n = tonumber(text)
  if n < low or n > high then return nil end
  return n
end
local function absent(key)
  local kind = redis.call('TYPE', key)
  return (kind.ok or kind) == 'none'
end
