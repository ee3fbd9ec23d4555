#!lua
-- name: cache-replace
-- version: 1
-- purpose: put another entry in the place of the version that was observed, and of no other
-- keys: 1
--   entry string
-- args: 3
--   observed text id 22..22
--   entry text bytes 25..524288
--   ttl integer ms 1..3155760000000
-- reply: 1
--   status text APPLIED|CHANGED|ABSENT|STATE_INCOMPATIBLE|INVALID
-- writes: on APPLIED only
-- ttl: ttl, set together with the entry
-- complexity: O(1) but for the length of the entry
-- redis: 7.0
--
-- An entry is one string: schema, token and value as 1:<22 characters>:<value>. The first 25 bytes
-- tell which version stands at the key, so the value that stands there is not read. A string of
-- another form, the empty one too, and a key of another type are STATE_INCOMPATIBLE and stay.

local function tokenOf(text)
  return string.match(text, '^1:([A-Za-z0-9_%-]+):$')
end

local key, observed, entry, ttl = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if #KEYS ~= 1 or #ARGV ~= 3 or #observed ~= 22 or tokenOf('1:' .. observed .. ':') == nil
  or #entry < 25 or #entry > 524288 or tokenOf(string.sub(entry, 1, 25)) == nil
  or #ttl > 13 or not string.find(ttl, '^[1-9]%d*$') or tonumber(ttl) > 3155760000000 then
  return 'INVALID'
end

local head = redis.pcall('GETRANGE', key, 0, 24)
if type(head) == 'table' then
  if string.find(head.err, '^WRONGTYPE') then return 'STATE_INCOMPATIBLE' end
  return head
end
if head == '' and redis.call('EXISTS', key) == 0 then return 'ABSENT' end
local stored = #head == 25 and tokenOf(head)
if not stored then return 'STATE_INCOMPATIBLE' end
if stored ~= observed then return 'CHANGED' end
redis.call('SET', key, entry, 'PX', ttl)
return 'APPLIED'
