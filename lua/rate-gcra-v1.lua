#!lua
-- name: rate-gcra
-- version: 1
-- purpose: admit at an even rate with a burst, by the theoretical arrival time of what was admitted
-- keys: 1
--   state hash
-- args: 8
--   identity text id 6..64
--   limit integer units 1..9007199254740991
--   period integer ms 1..3155760000000
--   burst integer units 1..9007199254740991
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
-- ttl: the arrival time plus grace plus the span of the burst, set where the expiry kept in the state
--   is below the arrival time plus grace; with a caller clock on every write, and at least 24 h
-- complexity: O(1)
-- redis: 7.0
--
-- identity is 1:gc:<policy revision>:<parameter fingerprint>: schema, algorithm, revision and
-- fingerprint in one text. limit units are due each period ms, in lowest terms. The limit of the reply
-- is the burst. clock 0 means the server's own; any other value is a caller's (simulation), and the
-- state says so by the suffix :sim of its identity.
--
-- The state is one field, whose name is the identity: what stands under another name is no state of this
-- policy. Its value is, with spaces between, theoretical arrival time in whole ms, its fraction
-- (0..limit-1, over limit), last observed ms, expiry ms.
-- @include prelude-v1

-- Each argument is 1..16 digits, within the header's range. They are searched together: where all have
-- no more than 22 digits, none has more than 16. 12 digits are within grace's range and 7 within that of
-- max_regression, which most calls never calculate with.
local argv = ARGV
local identity, limit, period, burst, grace, max_regression, cost, clock =
  argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], argv[7], argv[8]
local digits = #KEYS == 1 and #argv == 8
  and limit .. period .. burst .. grace .. max_regression .. cost .. clock
if not digits or not find(digits, '^%d+$') or #identity > 64 or sub(identity, 1, 5) ~= '1:gc:'
  or limit == '' or period == '' or burst == '' or grace == '' or max_regression == '' or cost == ''
  or clock == ''
  or #digits > 22 and (#limit > 16 or #period > 16 or #burst > 16 or #cost > 16 or #clock > 16)
  or #grace > 12 and (#grace > 16 or grace + 0 > 3155760000000)
  or #max_regression > 7 and (#max_regression > 16 or max_regression + 0 > 86400000) then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
limit, period, burst, cost = limit + 0, period + 0, burst + 0, cost + 0
clock = clock == '0' and 0 or clock + 0
if limit < 1 or period < 1 or period > 3155760000000 or burst < 1 or burst > 9007199254740991
  or cost < 1 or cost > burst or clock > 4398046511104 or server_now > 4398046511104
  or limit * (period + 1) > 9007199254740991
  or (burst - burst % limit) / limit * period > 3155760000000 then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
if clock > 0 then
  server_now = clock
  identity = identity .. ':sim'
end

-- span gives the time that units take at the even rate, in whole ms and a fraction over limit.
local function span(units)
  local rest = units % limit
  local share = rest * period
  local part = share % limit
  return (units - rest) / limit * period + (share - part) / limit, part
end
local tolerance, tolerance_part = span(burst)

local key = KEYS[1]
local state = redis.pcall('HGET', key, identity)
local now, arrival, part, expires_at = server_now, server_now, 0, 0
if state then
  if state.err then
    if find(state.err, '^WRONGTYPE') then
      return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
    end
    return state
  end
  local stored_arrival, stored_part, last, expiry = match(state, '^(%d+) (%d+) (%d+) (%d+)$')
  if not last or #stored_arrival > 16 or #stored_part > 16 or #last > 16 or #expiry > 16 then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  stored_arrival, stored_part, last, expires_at =
    stored_arrival + 0, stored_part + 0, last + 0, expiry + 0
  local ahead = stored_arrival - last
  if stored_arrival > 9007199254740991 or stored_part >= limit or last > 4398046511104
    or expires_at > 9007199254740991 or ahead < 0 or ahead == 0 and stored_part == 0
    or ahead > tolerance or ahead == tolerance and stored_part > tolerance_part then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  if last > now then
    local safe_at = last - max_regression
    if safe_at > now then
      return {'CLOCK_UNSAFE', now, now, burst, 0, safe_at - now, safe_at}
    end
    now = last
  end
  if stored_arrival >= now then
    arrival, part = stored_arrival, stored_part
  else
    arrival = now
  end
else
  -- TYPE answers a status reply or a plain string, by server and protocol.
  local kind = redis.call('TYPE', key)
  if (kind.ok or kind) ~= 'none' then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
end

-- left gives the units that fit between an arrival time and the latest that is tolerated.
local function left(ms, fraction)
  local slack, rest = now + tolerance - ms, tolerance_part - fraction
  if rest < 0 then slack, rest = slack - 1, rest + limit end
  local over = slack % period
  rest = over * limit + rest
  return (slack - over) / period * limit + (rest - rest % period) / period
end

local next_arrival, next_part = span(cost)
next_arrival, next_part = arrival + next_arrival, part + next_part
if next_part >= limit then next_arrival, next_part = next_arrival + 1, next_part - limit end

local fits_at, fits_part = next_arrival - tolerance, next_part - tolerance_part
if fits_at > now or fits_at == now and fits_part > 0 then
  if fits_part < 0 then fits_at, fits_part = fits_at - 1, fits_part + limit end
  return {'DENIED', server_now, now, burst, left(arrival, part),
    (fits_part > 0 and fits_at + 1 or fits_at) - server_now, part > 0 and arrival + 1 or arrival}
end

local reset_at = next_part > 0 and next_arrival + 1 or next_arrival
if expires_at >= reset_at + grace and clock == 0 then
  redis.call('HSET', key, identity, format('%d %d %d %d', next_arrival, next_part, now, expires_at))
else
  -- A server whose long has 32 bits would cut the integers of a state: it gets none.
  if format('%d', 9007199254740991) ~= '9007199254740991' then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  if expires_at < reset_at + grace then
    expires_at = reset_at + grace + (tolerance_part > 0 and tolerance + 1 or tolerance)
  end
  local after = format('%d %d %d %d', next_arrival, next_part, now, expires_at)
  local ttl = expires_at - server_now
  if clock > 0 and ttl < 86400000 then ttl = 86400000 end
  ttl = format('%.0f', ttl)
  local found = redis.call('PEXPIRE', key, ttl)
  redis.call('HSET', key, identity, after)
  if found == 0 then redis.call('PEXPIRE', key, ttl) end
end
return {'ALLOWED', server_now, now, burst, left(next_arrival, next_part), 0, reset_at}
