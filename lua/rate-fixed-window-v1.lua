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
-- fingerprint in one text. clock 0 means the server's own; any other value is a caller's (simulation),
-- and the state says so by the suffix :sim of its identity.
--
-- The state is one field, whose name is the identity: what stands under another name is no state of this
-- policy. Its value is, with spaces between, window id, consumed in that window, last observed ms.
-- @include prelude-v1

-- Each argument is 1..16 digits, within the header's range. They are searched together: where all have
-- no more than 21 digits, none has more than 16. 12 digits are within grace's range and 7 within that of
-- max_regression, which most calls never calculate with.
local argv = ARGV
local identity, limit, window, grace, max_regression, cost, clock =
  argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], argv[7]
local digits = #KEYS == 1 and #argv == 7
  and limit .. window .. grace .. max_regression .. cost .. clock
if not digits or not find(digits, '^%d+$') or #identity > 64 or sub(identity, 1, 5) ~= '1:fw:'
  or limit == '' or window == '' or grace == '' or max_regression == '' or cost == '' or clock == ''
  or #digits > 21 and (#limit > 16 or #window > 16 or #cost > 16 or #clock > 16)
  or #grace > 12 and (#grace > 16 or grace + 0 > 3155760000000)
  or #max_regression > 7 and (#max_regression > 16 or max_regression + 0 > 86400000) then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
limit, window, cost = limit + 0, window + 0, cost + 0
clock = clock == '0' and 0 or clock + 0
if limit < 1 or limit > 9007199254740991 or window < 1 or window > 3155760000000
  or cost < 1 or cost > limit or clock > 4398046511104 or server_now > 4398046511104 then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
if clock > 0 then
  server_now = clock
  identity = identity .. ':sim'
end

local key = KEYS[1]
local state = redis.pcall('HGET', key, identity)
local now, consumed, stored_window = server_now, 0, nil
if state then
  if state.err then
    if find(state.err, '^WRONGTYPE') then
      return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
    end
    return state
  end
  local last
  stored_window, consumed, last = match(state, '^(%d+) (%d+) (%d+)$')
  if not last or #stored_window > 16 or #consumed > 16 or #last > 16 then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  stored_window, consumed, last = stored_window + 0, consumed + 0, last + 0
  if last > 4398046511104 or consumed < 1 or consumed > limit
    or stored_window ~= (last - last % window) / window then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  if last > now then
    local safe_at = last - max_regression
    if safe_at > now then
      return {'CLOCK_UNSAFE', now, now, limit, 0, safe_at - now, safe_at}
    end
    now = last
  end
else
  -- TYPE answers a status reply or a plain string, by server and protocol.
  local kind = redis.call('TYPE', key)
  if (kind.ok or kind) ~= 'none' then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
end

local start = now - now % window
local id, window_end = start / window, start + window
local current = stored_window == id
if not current then consumed = 0 end
if cost > limit - consumed then
  return {'DENIED', server_now, now, limit, limit - consumed, window_end - server_now, window_end}
end
consumed = consumed + cost

local after = format('%d %d %d', id, consumed, now)
if current and clock == 0 then
  redis.call('HSET', key, identity, after)
else
  -- A server whose long has 32 bits would cut the integers of a state: it gets none.
  if format('%d', 9007199254740991) ~= '9007199254740991' then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  local ttl = window_end + grace - server_now
  if clock > 0 and ttl < 86400000 then ttl = 86400000 end
  ttl = format('%.0f', ttl)
  local found = redis.call('PEXPIRE', key, ttl)
  redis.call('HSET', key, identity, after)
  if found == 0 then redis.call('PEXPIRE', key, ttl) end
end
return {'ALLOWED', server_now, now, limit, limit - consumed, 0, window_end}
