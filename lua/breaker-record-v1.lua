#!lua
-- name: breaker-record
-- version: 1
-- purpose: count the result of a call that a circuit breaker let through
-- keys: 1
--   state hash
-- args: 18
--   identity text id 6..64
--   threshold integer calls 0..1000000000
--   buckets integer buckets 0..20
--   bucket_width integer ms 0..3155760000000
--   minimum_calls integer calls 0..1000000000
--   rate_permille integer permille 0..1000
--   open_timeout integer ms 1..3155760000000
--   max_probes integer probes 1..16
--   probe_lease integer ms 1..3155760000000
--   probe_successes integer probes 1..1000000
--   grace integer ms 0..3155760000000
--   max_regression integer ms 0..86400000
--   kind text CALL|PROBE
--   token text id 32..32
--   generation integer ms 0..4398046511104
--   acquired_at integer ms 0..4398046511104
--   result text SUCCESS|FAILURE|NEITHER
--   clock integer ms 0..4398046511104
-- reply: 7
--   status text COUNTED|RELEASED|LATE|CLOCK_UNSAFE|STATE_INCOMPATIBLE|INVALID
--   before text closed|open|half-open|INVALID
--   state text closed|open|half-open|INVALID
--   server_now integer ms 0..9007199254740991
--   effective_now integer ms 0..9007199254740991
--   since integer ms 0..9007199254740991
--   retry_after integer ms 0..9007199254740991
-- writes: on COUNTED, but not on a success where no failure is to be forgotten; on RELEASED of a probe
-- ttl: the longest of open timeout, window and probe lease, plus grace, on every write; with a caller
--   clock at least 24 h
-- complexity: O(probes + buckets)
-- redis: 7.0
--
-- kind, token, generation (since) and acquired_at (effective_now) are those of breaker-acquire. clock 0
-- means the server's own; any other value is a caller's (simulation). The fields of a state stand in
-- prelude-breaker-v1.
-- @include prelude-v1
-- @include prelude-integer-v1
local clock = uint(ARGV[18], 0, 4398046511104)
-- @include prelude-breaker-v1

local kind, token, result = ARGV[13], ARGV[14], ARGV[17]
local generation = uint(ARGV[15], 0, 4398046511104)
local acquired_at = uint(ARGV[16], 0, 4398046511104)
if #KEYS ~= 1 or #ARGV ~= 18 or kind ~= 'CALL' and kind ~= 'PROBE'
  or #token ~= 32 or not find(token, '^[0-9a-f]+$') or not (generation and acquired_at)
  or result ~= 'SUCCESS' and result ~= 'FAILURE' and result ~= 'NEITHER' or not policy_holds() then
  return {'INVALID', 'INVALID', 'INVALID', server_now, server_now, 0, 0}
end

local problem, err = load()
if err then return err end
if problem then
  local wait = problem == 'CLOCK_UNSAFE' and last - max_regression - server_now or 0
  return {problem, 'INVALID', 'INVALID', server_now, server_now, 0, wait}
end
local before = state
local function reply(status) return {status, before, state, server_now, now, since, waiting()} end

if kind == 'PROBE' then
  local slot = state == 'half-open' and 1 or max_probes + 1
  while slot <= max_probes and not (probes[slot] and probes[slot][1] > now and probes[slot][2] == token) do slot = slot + 1 end
  if slot > max_probes then return reply('LATE') end
  probes[slot] = nil
  if result == 'FAILURE' then
    enter('open')
  elseif result == 'SUCCESS' then
    successes = successes + 1
    if successes >= probe_successes then enter('closed') end
  end
  save_all()
  return reply(result == 'NEITHER' and 'RELEASED' or 'COUNTED')
end

if state ~= 'closed' or since ~= 0 and since ~= generation or now - acquired_at >= lifetime - max_regression then
  return reply('LATE')
end
if result == 'NEITHER' then return reply('RELEASED') end

local trips, field, value
local failed = result == 'FAILURE' and 1 or 0
if threshold > 0 then
  if failed + failures == 0 then return reply('COUNTED') end
  failures = (failures + 1) * failed
  trips = failures >= threshold
  field, value = 'f', format('%.0f', failures)
else
  local id = floor(now / bucket_width)
  local place = id - floor(id / buckets) * buckets + 1
  local bucket = ring[place]
  if not bucket or bucket[1] ~= id then bucket = {id, 0, 0} end
  if bucket[2] < MOST_CALLS then bucket[2], bucket[3] = bucket[2] + 1, bucket[3] + failed end
  ring[place] = bucket
  local results, failures_of = 0, 0
  for i = 1, buckets do
    local b = ring[i]
    if b and b[1] > id - buckets then results, failures_of = results + b[2], failures_of + b[3] end
  end
  trips = results >= minimum_calls and failures_of * 1000 >= rate_permille * results
  field, value = format('b%.0f', place), format('%.0f:%.0f:%.0f', bucket[1], bucket[2], bucket[3])
end
if trips then enter('open') end
if fresh or trips then
  save_all()
else
  save({field, value})
end
return reply('COUNTED')
