#!lua
-- name: breaker-read
-- version: 1
-- purpose: tell what a circuit breaker is in
-- keys: 1
--   state hash
-- args: 13
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
--   clock integer ms 0..4398046511104
-- reply: 8
--   status text READ|CLOCK_UNSAFE|STATE_INCOMPATIBLE|INVALID
--   state text closed|open|half-open|INVALID
--   server_now integer ms 0..9007199254740991
--   effective_now integer ms 0..9007199254740991
--   since integer ms 0..9007199254740991
--   retry_after integer ms 0..9007199254740991
--   tally integer calls 0..9007199254740991
--   total integer calls 0..9007199254740991
-- writes: never
-- ttl: left as it is
-- complexity: O(probes + buckets)
-- redis: 7.0
--
-- tally of total: closed, failures of results counted (of consecutive failures both are those in a
-- row); half-open, successful probes and probes under lease; open, 0. clock 0 means the server's own;
-- any other value is a caller's (simulation). The fields of a state stand in prelude-breaker-v1.
-- @include prelude-v1
-- @include prelude-integer-v1
local clock = uint(ARGV[13], 0, 4398046511104)
-- @include prelude-breaker-v1

if #KEYS ~= 1 or #ARGV ~= 13 or not policy_holds() then
  return {'INVALID', 'INVALID', server_now, server_now, 0, 0, 0, 0}
end

local problem, err = load()
if err then return err end
if problem then
  local wait = problem == 'CLOCK_UNSAFE' and last - max_regression - server_now or 0
  return {problem, 'INVALID', server_now, server_now, 0, wait, 0, 0}
end
local tally, total = 0, 0
if state == 'half-open' then
  tally = successes
  for i = 1, max_probes do
    if probes[i] and probes[i][1] > now then total = total + 1 end
  end
elseif threshold > 0 then
  tally, total = failures, failures
else
  local oldest = floor(now / bucket_width) - buckets
  for i = 1, buckets do
    local bucket = ring[i]
    if bucket and bucket[1] > oldest then tally, total = tally + bucket[3], total + bucket[2] end
  end
end
return {'READ', state, server_now, now, since, waiting(), tally, total}
