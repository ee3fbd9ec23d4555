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
-- fingerprint in one field. limit units are due each period ms, in lowest terms. clock 0 means the
-- server's own; any other value is a caller's (simulation), and the state says so by the suffix :sim.
-- The limit of the reply is the burst.
--
-- Fields: m identity, a theoretical arrival time in whole ms, f its fraction (0..limit-1, over
-- limit), l last observed ms, e expiry ms.
-- @include prelude-v1

local identity = ARGV[1]
local limit = uint(ARGV[2], 1, 9007199254740991)
local period = uint(ARGV[3], 1, 3155760000000)
local burst = uint(ARGV[4], 1, 9007199254740991)
local grace = uint(ARGV[5], 0, 3155760000000)
local max_regression = uint(ARGV[6], 0, 86400000)
local cost = burst and uint(ARGV[7], 1, burst)
local clock = uint(ARGV[8], 0, 4398046511104)
if not (limit and period and grace and max_regression and cost and clock)
  or #KEYS ~= 1 or #ARGV ~= 8 or #identity > 64 or not find(identity, '^1:gc:')
  or limit * (period + 1) > 9007199254740991
  or floor(burst / limit) * period > 3155760000000
  or server_now > 4398046511104 then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
if clock > 0 then
  server_now = clock
  identity = identity .. ':sim'
end

-- span gives the time that units take at the even rate, in whole ms and a fraction over limit.
local function span(units)
  local whole = floor(units / limit)
  local share = (units - whole * limit) * period
  local ms = floor(share / limit)
  return whole * period + ms, share - ms * limit
end
local tolerance, tolerance_part = span(burst)

local key = KEYS[1]
local state = redis.pcall('HMGET', key, 'm', 'a', 'f', 'l', 'e')
if state.err then
  if find(state.err, '^WRONGTYPE') then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  return state
end

local now, arrival, part, expires_at = server_now, server_now, 0, 0
local stored, stored_arrival, stored_part, last, stored_expiry =
  state[1], state[2], state[3], state[4], state[5]
if stored or stored_arrival or stored_part or last or stored_expiry then
  stored_arrival = uint(stored_arrival, 0, 9007199254740991)
  stored_part = uint(stored_part, 0, limit - 1)
  last = uint(last, 0, 4398046511104)
  expires_at = uint(stored_expiry, 0, 9007199254740991)
  if stored ~= identity or not (stored_arrival and stored_part and last and expires_at)
    or stored_arrival < last or stored_arrival == last and stored_part == 0
    or stored_arrival - last > tolerance
    or stored_arrival - last == tolerance and stored_part > tolerance_part then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  if last > now then
    local safe_at = last - max_regression
    if safe_at > now then
      return {'CLOCK_UNSAFE', now, now, burst, 0, safe_at - now, safe_at}
    end
    now = last
    arrival = now
  end
  if stored_arrival >= now then arrival, part = stored_arrival, stored_part end
elseif not absent(key) then
  return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
end

-- left gives the units that fit between an arrival time and the latest that is tolerated.
local function left(ms, fraction)
  local slack, rest = now + tolerance - ms, tolerance_part - fraction
  if rest < 0 then slack, rest = slack - 1, rest + limit end
  local whole = floor(slack / period)
  return whole * limit + floor(((slack - whole * period) * limit + rest) / period)
end
local function ceil(ms, fraction)
  return fraction > 0 and ms + 1 or ms
end

local next_arrival, next_part = span(cost)
next_arrival, next_part = arrival + next_arrival, part + next_part
if next_part >= limit then next_arrival, next_part = next_arrival + 1, next_part - limit end

if next_arrival - now > tolerance
  or next_arrival - now == tolerance and next_part > tolerance_part then
  local fits_at, fits_part = next_arrival - tolerance, next_part - tolerance_part
  if fits_part < 0 then fits_at, fits_part = fits_at - 1, fits_part + limit end
  return {'DENIED', server_now, now, burst, left(arrival, part),
    ceil(fits_at, fits_part) - server_now, ceil(arrival, part)}
end

local reset_at = ceil(next_arrival, next_part)
if expires_at >= reset_at + grace and clock == 0 then
  redis.call('HSET', key, 'a', format('%.0f', next_arrival), 'f', format('%.0f', next_part),
    'l', format('%.0f', now))
else
  if expires_at < reset_at + grace then
    expires_at = reset_at + grace + ceil(tolerance, tolerance_part)
  end
  local ttl = expires_at - server_now
  if clock > 0 and ttl < 86400000 then ttl = 86400000 end
  ttl = format('%.0f', ttl)
  local found = redis.call('PEXPIRE', key, ttl)
  redis.call('HSET', key, 'm', identity, 'a', format('%.0f', next_arrival),
    'f', format('%.0f', next_part), 'l', format('%.0f', now), 'e', format('%.0f', expires_at))
  if found == 0 then redis.call('PEXPIRE', key, ttl) end
end
return {'ALLOWED', server_now, now, burst, left(next_arrival, next_part), 0, reset_at}
