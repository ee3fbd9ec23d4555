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
-- fingerprint in one text. numerator tokens are gained each denominator ms, in lowest terms. clock 0
-- means the server's own; any other value is a caller's (simulation), and the state says so by the
-- suffix :sim of its identity.
--
-- The state is one field, whose name is the identity: what stands under another name is no state of this
-- policy. Its value is, with spaces between, tokens at scale 1, remainder of the last division
-- (0..denominator-1), last refill, which is the last observed ms, expiry ms.
-- @include prelude-v1

-- Each argument is 1..16 digits, within the header's range. They are searched together: where all have
-- no more than 22 digits, none has more than 16. 12 digits are within grace's range and 7 within that of
-- max_regression, which most calls never calculate with.
local argv = ARGV
local identity, capacity, numerator, denominator, grace, max_regression, cost, clock =
  argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], argv[7], argv[8]
local digits = #KEYS == 1 and #argv == 8
  and capacity .. numerator .. denominator .. grace .. max_regression .. cost .. clock
if not digits or not find(digits, '^%d+$') or #identity > 64 or sub(identity, 1, 5) ~= '1:tb:'
  or capacity == '' or numerator == '' or denominator == '' or grace == '' or max_regression == ''
  or cost == '' or clock == ''
  or #digits > 22 and (#capacity > 16 or #numerator > 16 or #denominator > 16 or #cost > 16 or #clock > 16)
  or #grace > 12 and (#grace > 16 or grace + 0 > 3155760000000)
  or #max_regression > 7 and (#max_regression > 16 or max_regression + 0 > 86400000) then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
capacity, numerator, denominator, cost = capacity + 0, numerator + 0, denominator + 0, cost + 0
clock = clock == '0' and 0 or clock + 0
if capacity < 1 or numerator < 1 or denominator < 1 or denominator > 3155760000000
  or cost < 1 or cost > capacity or clock > 4398046511104 or server_now > 4398046511104
  or denominator * (numerator + 1) > 9007199254740991
  or capacity + numerator > 9007199254740990
  or (capacity - capacity % numerator) / numerator * denominator > 3155760000000 then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
if clock > 0 then
  server_now = clock
  identity = identity .. ':sim'
end

local key = KEYS[1]
local state = redis.pcall('HGET', key, identity)
local now, tokens, remainder, expires_at = server_now, capacity, 0, 0
if state then
  if state.err then
    if find(state.err, '^WRONGTYPE') then
      return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
    end
    return state
  end
  local stored_tokens, stored_remainder, last, expiry = match(state, '^(%d+) (%d+) (%d+) (%d+)$')
  if not last or #stored_tokens > 16 or #stored_remainder > 16 or #last > 16 or #expiry > 16 then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  stored_tokens, stored_remainder, last, expires_at =
    stored_tokens + 0, stored_remainder + 0, last + 0, expiry + 0
  if stored_tokens >= capacity or stored_remainder >= denominator or last > 4398046511104
    or expires_at > 9007199254740991 then
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
  local rest = elapsed % denominator
  local whole = (elapsed - rest) / denominator
  -- More than fills the bucket is not multiplied: it could leave the integers.
  if whole <= capacity / numerator then
    local share = rest * numerator + stored_remainder
    local carried = share % denominator
    local gain = whole * numerator + (share - carried) / denominator
    if gain < capacity - stored_tokens then
      tokens, remainder = stored_tokens + gain, carried
    end
  end
else
  -- TYPE answers a status reply or a plain string, by server and protocol.
  local kind = redis.call('TYPE', key)
  if (kind.ok or kind) ~= 'none' then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
end

-- wait gives the ms until need more tokens, of which carried is there already.
local function wait(need, carried)
  local part = need % numerator
  local rest = part * denominator - carried
  -- Rounded up: rest is over numerator, and below 0 where carried is more than it takes.
  return (need - part) / numerator * denominator + (rest + -rest % numerator) / numerator
end

local left = tokens - cost
if left < 0 then
  return {'DENIED', server_now, now, capacity, tokens,
    now + wait(cost - tokens, remainder) - server_now, now + wait(capacity - tokens, remainder)}
end

local reset_at = now + wait(capacity - left, remainder)
if expires_at >= reset_at + grace and clock == 0 then
  redis.call('HSET', key, identity, format('%d %d %d %d', left, remainder, now, expires_at))
else
  -- A server whose long has 32 bits would cut the integers of a state: it gets none.
  if format('%d', 9007199254740991) ~= '9007199254740991' then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  if expires_at < reset_at + grace then expires_at = reset_at + grace + wait(capacity, 0) end
  local after = format('%d %d %d %d', left, remainder, now, expires_at)
  local ttl = expires_at - server_now
  if clock > 0 and ttl < 86400000 then ttl = 86400000 end
  ttl = format('%.0f', ttl)
  local found = redis.call('PEXPIRE', key, ttl)
  redis.call('HSET', key, identity, after)
  if found == 0 then redis.call('PEXPIRE', key, ttl) end
end
return {'ALLOWED', server_now, now, capacity, left, 0, reset_at}
