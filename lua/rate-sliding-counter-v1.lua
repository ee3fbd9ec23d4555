#!lua
-- name: rate-sliding-counter
-- version: 1
-- purpose: admit by the weighted count of the current and the previous aligned window
-- keys: 1
--   state hash
-- args: 7
--   identity text id 6..64
--   limit integer units 1..9007199254
--   window integer ms 1..3155760000000
--   grace integer ms 0..3155760000000
--   max_regression integer ms 0..86400000
--   cost integer units 1..9007199254
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
-- ttl: end of the window after the current one plus grace, set on the first write in a window; with
--   a caller clock on every write, and at least 24 h
-- complexity: O(1)
-- redis: 7.0
--
-- identity is 1:sc:<policy revision>:<parameter fingerprint>: schema, algorithm, revision and
-- fingerprint in one field. clock 0 means the server's own; any other value is a caller's
-- (simulation), and the state says so by the suffix :sim.
--
-- Fields: m identity, l last observed ms, w current window id, c its count, pw previous window id
-- (0 where the current one is 0), pc its count. The weight of the previous window has the scale
-- 1,000,000 and is rounded up, so the estimate is never below the true weighted count.
-- @include prelude-v1

local identity = ARGV[1]
local limit = uint(ARGV[2], 1, 9007199254)
local window = uint(ARGV[3], 1, 3155760000000)
local grace = uint(ARGV[4], 0, 3155760000000)
local max_regression = uint(ARGV[5], 0, 86400000)
local cost = limit and uint(ARGV[6], 1, limit)
local clock = uint(ARGV[7], 0, 4398046511104)
if not (window and grace and max_regression and cost and clock)
  or #KEYS ~= 1 or #ARGV ~= 7 or #identity > 64 or not find(identity, '^1:sc:')
  or server_now > 4398046511104 then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
if clock > 0 then
  server_now = clock
  identity = identity .. ':sim'
end

local key = KEYS[1]
local state = redis.pcall('HMGET', key, 'm', 'l', 'w', 'c', 'pw', 'pc')
if state.err then
  if find(state.err, '^WRONGTYPE') then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  return state
end

local now, id, count, previous, current = server_now, nil, 0, 0, false
local stored, last, stored_window, stored_count, stored_previous, previous_count =
  state[1], state[2], state[3], state[4], state[5], state[6]
if stored or last or stored_window or stored_count or stored_previous or previous_count then
  last = uint(last, 0, 4398046511104)
  stored_window = uint(stored_window, 0, 4398046511104)
  stored_count = uint(stored_count, 1, limit)
  stored_previous = uint(stored_previous, 0, 4398046511104)
  previous_count = uint(previous_count, 0, limit)
  if stored ~= identity
    or not (last and stored_window and stored_count and stored_previous and previous_count)
    or stored_window ~= floor(last / window)
    or stored_previous ~= (stored_window > 0 and stored_window - 1 or 0)
    or stored_window == 0 and previous_count > 0 then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  if last > now then
    local safe_at = last - max_regression
    if safe_at > now then
      return {'CLOCK_UNSAFE', now, now, limit, 0, safe_at - now, safe_at}
    end
    now = last
  end
  id = floor(now / window)
  if stored_window == id then
    count, previous, current = stored_count, previous_count, true
  elseif stored_window == id - 1 then
    previous = stored_count
  end
elseif absent(key) then
  id = floor(now / window)
else
  return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
end

local start = id * window
local window_end = start + window
local used = count
if previous > 0 then
  local left = 1000 * (window_end - now)
  local weight = 1000 * floor(left / window)
  local rest = 1000 * (left % window)
  if rest > 0 then weight = weight + floor((rest - 1) / window) + 1 end
  used = used + floor((previous * weight - 1) / 1000000) + 1
end

if cost > limit - used then
  local base, decaying, budget = start, previous, limit - cost - count
  if budget < 0 then base, decaying, budget = window_end, count, limit - cost end
  local v = floor(budget * 1000000 / decaying)
  if v > 1000000 then v = 1000000 end
  local retry_at = base + window
    - (v * floor(window / 1000000) + floor(v * (window % 1000000) / 1000000))
  return {'DENIED', server_now, now, limit, used < limit and limit - used or 0,
    retry_at - server_now, count > 0 and window_end + window or window_end}
end
count = count + cost

local reset_at = window_end + window
if current and clock == 0 then
  redis.call('HSET', key, 'l', format('%.0f', now), 'c', format('%.0f', count))
else
  local ttl = reset_at + grace - server_now
  if clock > 0 and ttl < 86400000 then ttl = 86400000 end
  ttl = format('%.0f', ttl)
  local found = redis.call('PEXPIRE', key, ttl)
  redis.call('HSET', key, 'm', identity, 'l', format('%.0f', now), 'w', format('%.0f', id),
    'c', format('%.0f', count), 'pw', format('%.0f', id > 0 and id - 1 or 0),
    'pc', format('%.0f', previous))
  if found == 0 then redis.call('PEXPIRE', key, ttl) end
end
return {'ALLOWED', server_now, now, limit, limit - used - cost, 0, reset_at}
