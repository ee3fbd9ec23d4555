#!lua
-- name: breaker-acquire
-- version: 1
-- purpose: ask a circuit breaker for a call, and lease it a slot where it is a probe
-- keys: 1
--   state hash
-- args: 14
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
--   token text id 32..32
--   clock integer ms 0..4398046511104
-- reply: 7
--   status text CALL|PROBE|REJECTED|CLOCK_UNSAFE|STATE_INCOMPATIBLE|INVALID
--   state text closed|open|half-open|INVALID
--   server_now integer ms 0..9007199254740991
--   effective_now integer ms 0..9007199254740991
--   since integer ms 0..9007199254740991
--   retry_after integer ms 0..9007199254740991
--   lease_until integer ms 0..9007199254740991
-- writes: on PROBE only
-- ttl: the longest of open timeout, window and probe lease, plus grace, on every write; with a caller
--   clock at least 24 h
-- complexity: O(probes + buckets)
-- redis: 7.0
--
-- clock 0 means the server's own; any other value is a caller's (simulation). The fields of a state
-- stand in prelude-breaker-v1.
-- @include prelude-v1
-- @include prelude-integer-v1
local clock = uint(ARGV[14], 0, 4398046511104)
-- @include prelude-breaker-v1

local token = ARGV[13]
if #KEYS ~= 1 or #ARGV ~= 14 or #token ~= 32 or not find(token, '^[0-9a-f]+$') or not policy_holds() then
  return {'INVALID', 'INVALID', server_now, server_now, 0, 0, 0}
end

local problem, err = load()
if err then return err end
if problem then
  local wait = problem == 'CLOCK_UNSAFE' and last - max_regression - server_now or 0
  return {problem, 'INVALID', server_now, server_now, 0, wait, 0}
end
if state == 'closed' then return {'CALL', state, server_now, now, since, 0, 0} end
local wait = waiting()
if wait > 0 then return {'REJECTED', state, server_now, now, since, wait, 0} end

local slot = 1
while probes[slot] and probes[slot][1] > now do slot = slot + 1 end
local lease_until = now + probe_lease
probes[slot] = {lease_until, token}
save_all()
return {'PROBE', state, server_now, now, since, 0, lease_until}
