#!lua
-- name: store-incrby
-- version: 1
-- purpose: add to an integer, and give it a lifetime where it is created
-- keys: 1
--   value string
-- args: 2
--   delta integer units -9007199254740991..9007199254740991
--   ttl integer ms 1..3155760000000
-- reply: 1
--   sum integer units -9007199254740991..9007199254740991 NOT_INTEGER|OUT_OF_RANGE
-- writes: where it answers an integer
-- ttl: ttl, on creation only
-- complexity: O(1)
-- redis: 7.0
--
-- One write, which sets value and lifetime together on creation, and keeps the lifetime otherwise.
-- A value that is not the canonical form of such an integer is NOT_INTEGER.

local MAX = 9007199254740991
local function integer(text)
  if #text > 17 or not (text == '0' or string.find(text, '^%-?[1-9]%d*$')) then return nil end
  local n = tonumber(text)
  if n > MAX or n < -MAX then return nil end
  return n
end

local key = KEYS[1]
local delta = integer(ARGV[1])
local stored = redis.call('GET', key)
local value = stored and integer(stored) or 0
if not delta or stored and not integer(stored) then return 'NOT_INTEGER' end
local sum = value + delta
if sum > MAX or sum < -MAX then return 'OUT_OF_RANGE' end
local text = string.format('%.0f', sum)
if sum == 0 then text = '0' end
if stored then
  redis.call('SET', key, text, 'KEEPTTL')
else
  redis.call('SET', key, text, 'PX', ARGV[2])
end
return sum
