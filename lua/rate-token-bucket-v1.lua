#!lua
-- name: rate-token-bucket
-- version: 1
-- purpose: admit from a bucket that refills evenly, with the remainder of each division carried
-- keys: 1
--   state hash
-- args: 8
--   identity text id 6..64
--   capacity integer tokens 1..9007199254740991
--   numerator integer tokens 1..9007199254740991
--   denominator integer ms 1..3155760000000
--   grace integer ms 0..3155760000000
--   max_regression integer ms 0..86400000
--   cost integer tokens 1..9007199254740991
--   clock integer ms 0..4398046511104
-- reply: 7
--   status text ALLOWED|DENIED|CLOCK_UNSAFE|STATE_INCOMPATIBLE|INVALID
--   server_now integer ms 0..9007199254740991
--   effective_now integer ms 0..9007199254740991
--   limit integer tokens 0..9007199254740991
--   remaining integer tokens 0..9007199254740991
--   retry_after integer ms 0..9007199254740991
--   reset_at integer ms 0..9007199254740991
-- writes: on ALLOWED only
-- ttl: the moment of the full bucket plus grace plus the time to fill it, set where the expiry kept
--   in the state is below the moment of the full bucket plus grace; with a caller clock on every
--   write, and at least 24 h
-- complexity: O(1)
-- redis: 7.0
--
-- identity is 1:tb:<policy revision>:<parameter fingerprint>: schema, algorithm, revision and
-- fingerprint in one field. numerator tokens are gained each denominator ms, in lowest terms. clock
-- 0 means the server's own; any other value is a caller's (simulation), and the state says so by
-- the suffix :sim.
--
-- Fields: m identity, t tokens at scale 1, r remainder of the last division (0..denominator-1), l
-- last refill, which is the last observed ms, e expiry ms.
-- @include prelude-v1

local identity = ARGV[1]
local capacity = uint(ARGV[2], 1, 9007199254740991)
local numerator = uint(ARGV[3], 1, 9007199254740991)
local denominator = uint(ARGV[4], 1, 3155760000000)
local grace = uint(ARGV[5], 0, 3155760000000)
local max_regression = uint(ARGV[6], 0, 86400000)
local cost = capacity and uint(ARGV[7], 1, capacity)
local clock = uint(ARGV[8], 0, 4398046511104)
if not (numerator and denominator and grace and max_regression and cost and clock)
  or #KEYS ~= 1 or #ARGV ~= 8 or #identity > 64 or not find(identity, '^1:tb:')
  or denominator * (numerator + 1) > 9007199254740991
  or capacity + numerator > 9007199254740990
  or floor(capacity / numerator) * denominator > 3155760000000
  or server_now > 4398046511104 then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
if clock > 0 then
  server_now = clock
  identity = identity .. ':sim'
end

local key = KEYS[1]
local state = redis.pcall('HMGET', key, 'm', 't', 'r', 'l', 'e')
if state.err then
  if find(state.err, '^WRONGTYPE') then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  return state
end

local now, tokens, remainder, expires_at = server_now, capacity, 0, 0
local stored, stored_tokens, stored_remainder, last, stored_expiry =
  state[1], state[2], state[3], state[4], state[5]
if stored or stored_tokens or stored_remainder or last or stored_expiry then
  stored_tokens = uint(stored_tokens, 0, capacity - 1)
  stored_remainder = uint(stored_remainder, 0, denominator - 1)
  last = uint(last, 0, 4398046511104)
  expires_at = uint(stored_expiry, 0, 9007199254740991)
  if stored ~= identity or not (stored_tokens and stored_remainder and last and expires_at) then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  if last > now then
    local safe_at = last - max_regression
    if safe_at > now then
      return {'CLOCK_UNSAFE', now, now, capacity, 0, safe_at - now, safe_at}
    end
    now = last
  end
  local elapsed = now - last
  local whole = floor(elapsed / denominator)
  if whole <= floor(capacity / numerator) then
    local share = (elapsed - whole * denominator) * numerator + stored_remainder
    local gained = floor(share / denominator)
    local gain = whole * numerator + gained
    if gain < capacity - stored_tokens then
      tokens, remainder = stored_tokens + gain, share - gained * denominator
    end
  end
elseif not absent(key) then
  return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
end

local function wait(need, carried)
  local whole = floor(need / numerator)
  local rest = (need - whole * numerator) * denominator
  if rest > carried then
    return whole * denominator + floor((rest - carried - 1) / numerator) + 1
  end
  return whole * denominator - floor((carried - rest) / numerator)
end

if cost > tokens then
  return {'DENIED', server_now, now, capacity, tokens,
    now + wait(cost - tokens, remainder) - server_now, now + wait(capacity - tokens, remainder)}
end
tokens = tokens - cost

local reset_at = now + wait(capacity - tokens, remainder)
if expires_at >= reset_at + grace and clock == 0 then
  redis.call('HSET', key, 't', format('%.0f', tokens), 'r', format('%.0f', remainder),
    'l', format('%.0f', now))
else
  if expires_at < reset_at + grace then expires_at = reset_at + grace + wait(capacity, 0) end
  local ttl = expires_at - server_now
  if clock > 0 and ttl < 86400000 then ttl = 86400000 end
  ttl = format('%.0f', ttl)
  local found = redis.call('PEXPIRE', key, ttl)
  redis.call('HSET', key, 'm', identity, 't', format('%.0f', tokens), 'r', format('%.0f', remainder),
    'l', format('%.0f', now), 'e', format('%.0f', expires_at))
  if found == 0 then redis.call('PEXPIRE', key, ttl) end
end
return {'ALLOWED', server_now, now, capacity, tokens, 0, reset_at}
