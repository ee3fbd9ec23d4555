#!lua
-- name: rate-fixed-window
-- version: 1
-- purpose: admit at most limit units of cost in each window aligned to the epoch
-- keys: 1
--   state hash
-- args: 7
--   identity text id 6..64
--   limit integer units 1..9007199254740991
--   window integer ms 1..3155760000000
--   grace integer ms 0..3155760000000
--   max_regression integer ms 0..86400000
--   cost integer units 1..9007199254740991
--   clock integer ms 0..4398046511104
-- reply: 7
--   status text ALLOWED|DENIED|CLOCK_UNSAFE|STATE_INCOMPATIBLE|INVALID
--   server_now integer ms 0..9007199254740991
--   effective_now integer ms 0..9007199254740991
--   limit integer units 0..9007199254740991
--   remaining integer units 0..9007199254740991
--   retry_after integer ms 0..9007199254740991
--   reset_at integer ms 0..9007199254740991
-- writes: on ALLOWED only
-- ttl: window end plus grace, set on the first write in a window; with a caller clock on every
--   write, and at least 24 h
-- complexity: O(1)
-- redis: 7.0
--
-- identity is 1:fw:<policy revision>:<parameter fingerprint>: schema, algorithm, revision and
-- fingerprint in one field. clock 0 means the server's own; any other value is a caller's
-- (simulation), and the state says so by the suffix :sim.
--
-- Fields: m identity, l last observed ms, w window id, c consumed in that window.
-- @include prelude-v1

local identity = ARGV[1]
local limit = uint(ARGV[2], 1, 9007199254740991)
local window = uint(ARGV[3], 1, 3155760000000)
local grace = uint(ARGV[4], 0, 3155760000000)
local max_regression = uint(ARGV[5], 0, 86400000)
local cost = limit and uint(ARGV[6], 1, limit)
local clock = uint(ARGV[7], 0, 4398046511104)
if not (window and grace and max_regression and cost and clock)
  or #KEYS ~= 1 or #ARGV ~= 7 or #identity > 64 or not find(identity, '^1:fw:')
  or server_now > 4398046511104 then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
if clock > 0 then
  server_now = clock
  identity = identity .. ':sim'
end

local key = KEYS[1]
local state = redis.pcall('HMGET', key, 'm', 'l', 'w', 'c')
if state.err then
  if find(state.err, '^WRONGTYPE') then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  return state
end

local now, consumed, current = server_now, 0, false
local stored, last, stored_window, stored_consumed = state[1], state[2], state[3], state[4]
if stored or last or stored_window or stored_consumed then
  last = uint(last, 0, 4398046511104)
  stored_window = uint(stored_window, 0, 4398046511104)
  stored_consumed = uint(stored_consumed, 1, limit)
  if stored ~= identity or not (last and stored_window and stored_consumed)
    or stored_window ~= floor(last / window) then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  if last > now then
    local safe_at = last - max_regression
    if safe_at > now then
      return {'CLOCK_UNSAFE', now, now, limit, 0, safe_at - now, safe_at}
    end
    now = last
  end
  if stored_window == floor(now / window) then
    consumed, current = stored_consumed, true
  end
elseif not absent(key) then
  return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
end

local id = floor(now / window)
local window_end = (id + 1) * window
if cost > limit - consumed then
  return {'DENIED', server_now, now, limit, limit - consumed, window_end - server_now, window_end}
end
consumed = consumed + cost

if current and clock == 0 then
  redis.call('HSET', key, 'l', format('%.0f', now), 'c', format('%.0f', consumed))
else
  local ttl = window_end + grace - server_now
  if clock > 0 and ttl < 86400000 then ttl = 86400000 end
  ttl = format('%.0f', ttl)
  local found = redis.call('PEXPIRE', key, ttl)
  redis.call('HSET', key, 'm', identity, 'l', format('%.0f', now), 'w', format('%.0f', id),
    'c', format('%.0f', consumed))
  if found == 0 then redis.call('PEXPIRE', key, ttl) end
end
return {'ALLOWED', server_now, now, limit, limit - consumed, 0, window_end}
