#!lua
-- name: cache-delete
-- version: 1
-- purpose: remove the version that was observed, and no other
-- keys: 1
--   entry string
-- args: 1
--   observed text id 22..22
-- reply: 1
--   status text APPLIED|CHANGED|ABSENT|STATE_INCOMPATIBLE|INVALID
-- writes: on APPLIED only
-- ttl: none, it creates no key
-- complexity: O(1)
-- redis: 7.0
--
-- An entry is one string: schema, token and value as 1:<22 characters>:<value>. A string of another
-- form, the empty one too, and a key of another type are STATE_INCOMPATIBLE and stay.

local function tokenOf(text)
  return string.match(text, '^1:([A-Za-z0-9_%-]+):$')
end

local key, observed = KEYS[1], ARGV[1]
if #KEYS ~= 1 or #ARGV ~= 1 or #observed ~= 22 or tokenOf('1:' .. observed .. ':') == nil then
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
redis.call('DEL', key)
return 'APPLIED'
