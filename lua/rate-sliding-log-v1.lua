#!lua
-- name: rate-sliding-log
-- version: 1
-- purpose: admit at most limit units of cost in any interval of a window's length, exactly
-- keys: 1
--   state zset
-- args: 7
--   identity text id 6..64
--   limit integer units 1..10000
--   window integer ms 1..3155760000000
--   grace integer ms 0..3155760000000
--   max_regression integer ms 0..86400000
--   cost integer units 1..10000
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
-- ttl: a window plus grace, set on every write; with a caller clock at least 24 h
-- complexity: O(log n) and the entries removed, each of which was one admission; n is at most limit
-- redis: 7.0
--
-- identity is 1:sl:<policy revision>:<parameter fingerprint>: schema, algorithm, revision and
-- fingerprint in one text. clock 0 means the server's own; any other value is a caller's
-- (simulation), and the state says so by the suffix :sim.
--
-- Members: one with the score -1, which is the identity, the last observed ms and the last
-- cumulative cost, with spaces between; and one for each admission, with its ms as the score, which is
-- the cumulative cost in 16 digits, a colon and the cost. An admission is live while its ms plus
-- window is after now. Cumulative costs begin anew where nothing is live; one above 2^53-1 - limit is
-- incompatible, since the next could not be exact. What is read is checked; what is not, is not.
-- @include prelude-v1
-- @include prelude-integer-v1

local identity = ARGV[1]
local limit = uint(ARGV[2], 1, 10000)
local window = uint(ARGV[3], 1, 3155760000000)
local grace = uint(ARGV[4], 0, 3155760000000)
local max_regression = uint(ARGV[5], 0, 86400000)
local cost = limit and uint(ARGV[6], 1, limit)
local clock = uint(ARGV[7], 0, 4398046511104)
if not (window and grace and max_regression and cost and clock)
  or #KEYS ~= 1 or #ARGV ~= 7 or #identity > 64 or not find(identity, '^1:sl:')
  or server_now > 4398046511104 then
  return {'INVALID', server_now, server_now, 0, 0, 0, 0}
end
if clock > 0 then
  server_now = clock
  identity = identity .. ':sim'
end

-- The metadata and the oldest entry, which is the first live one unless time has moved over it.
local key = KEYS[1]
local state = redis.pcall('ZRANGE', key, '0', '1', 'WITHSCORES')
if state.err then
  if find(state.err, '^WRONGTYPE') then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  return state
end

local last, total
-- entry gives ms, cumulative cost and cost of a member with its score, or nil where no admission of
-- this state can have left it.
local function entry(member, score)
  local at = uint(score, 0, last)
  if not at or at + window <= last or find(member, ':', 1, true) ~= 17 then return nil end
  local spent = uint(sub(member, 1, 16), 1, total)
  local units = uint(sub(member, 18), 1, limit)
  if not (spent and units) or units > spent or total - spent + units > limit then return nil end
  return at, spent, units
end

local now, used = server_now, 0
if state[1] then
  local head = #identity + 1
  if sub(state[1], 1, head) == identity .. ' ' and state[2] == '-1' then
    last, total = match(sub(state[1], head + 1), '^(%d+) (%d+)$')
  end
  last, total = uint(last, 0, 4398046511104), uint(total, 1, 9007199254740991 - limit)
  if not (last and total and state[3]) then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  local at, spent, units = entry(state[3], state[4])
  if not at then
    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
  end
  if last > now then
    local safe_at = last - max_regression
    if safe_at > now then
      return {'CLOCK_UNSAFE', now, now, limit, 0, safe_at - now, safe_at}
    end
    now = last
  end
  if last + window > now then
    if at + window <= now then
      local live = redis.call('ZRANGE', key, '(' .. format('%.0f', now - window), '+inf',
        'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES')
      if live[1] then at, spent, units = entry(live[1], live[2]) end
      if not at or at + window <= now then
        return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
      end
    end
    used = total - spent + units
    if cost > limit - used then
      -- What was spent after an entry has to fit beside the cost: the oldest such entry is the last
      -- that has to go. The first live one is, where costs are even; else it is among the newest
      -- limit - cost + 1, counted from the end, where the metadata and what is dead never fit.
      if total - spent > limit - cost then
        local low, high = 1, limit - cost + 1
        at = last
        while low < high do
          local middle = floor((low + high + 1) / 2)
          local rank = format('%.0f', -middle)
          local probed = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
          local moment, sum
          if probed[1] and probed[2] ~= '-1' then
            moment, sum = entry(probed[1], probed[2])
            if not moment then
              return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
            end
          end
          if moment and total - sum <= limit - cost then
            low, at = middle, moment
          else
            high = middle - 1
          end
        end
        if at + window <= now then
          return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
        end
      end
      return {'DENIED', server_now, now, limit, limit - used, at + window - server_now,
        last + window}
    end
  else
    total = 0
  end
else
  total = 0
end
total = total + cost

local reset_at = now + window
local ttl = reset_at + grace - server_now
if clock > 0 and ttl < 86400000 then ttl = 86400000 end
ttl = format('%.0f', ttl)
-- A server whose long has 32 bits would cut the integers of a state: it gets none.
if not state[1] and format('%d', 9007199254740991) ~= '9007199254740991' then
  return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}
end
-- Takes the metadata with what is dead.
local dead = now - window
redis.call('ZREMRANGEBYSCORE', key, '-inf', dead < -1 and '-1' or format('%d', dead))
local found = redis.call('PEXPIRE', key, ttl)
redis.call('ZADD', key, '-1', identity .. format(' %d %d', now, total),
  format('%d', now), format('%016d:%d', total, cost))
if found == 0 then redis.call('PEXPIRE', key, ttl) end
return {'ALLOWED', server_now, now, limit, limit - used - cost, 0, reset_at}
