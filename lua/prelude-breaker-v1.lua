-- Shared by every breaker program: included where a program says `@include prelude-breaker-v1`, after
-- prelude-v1 and the local clock.
-- The first twelve arguments are the policy. identity is 1:cb:<policy revision>:<fingerprint>: schema,
-- algorithm, revision and fingerprint in one field, with the suffix :sim under a caller's clock.
-- Either threshold is set (consecutive failures), or the four after it (failure rate).
--
-- Fields: m identity, l last observed ms, s state, o since ms, f consecutive failures, k successful
-- probes, p1.. a probe's slot as expiry:token, b1.. a bucket as id:calls:failures, both - where there
-- is nothing. All fields are always there and numbers are in their shortest form.
--
-- load reads the state, holds it to its form, clamps the clock, forgets what is older than its
-- lifetime, and moves an open breaker whose timeout is over to half-open. It gives the status of a
-- reply that must end the program, or an error of the server, or nothing.
-- waiting gives the ms until something can be let through, 0 where that is now.
-- fresh says that nothing stored counts: there is no key, or its state is forgotten.
-- save and save_all write: one field, or all, with the lifetime before it.
local identity = ARGV[1]
local threshold = uint(ARGV[2], 0, 1000000000)
local buckets = uint(ARGV[3], 0, 20)
local bucket_width = uint(ARGV[4], 0, 3155760000000)
local minimum_calls = uint(ARGV[5], 0, 1000000000)
local rate_permille = uint(ARGV[6], 0, 1000)
local open_timeout = uint(ARGV[7], 1, 3155760000000)
local max_probes = uint(ARGV[8], 1, 16)
local probe_lease = uint(ARGV[9], 1, 3155760000000)
local probe_successes = uint(ARGV[10], 1, 1000000)
local grace = uint(ARGV[11], 0, 3155760000000)
local max_regression = uint(ARGV[12], 0, 86400000)
local function policy_holds()
  return threshold and buckets and bucket_width and minimum_calls and rate_permille and open_timeout
    and max_probes and probe_lease and probe_successes and grace and max_regression and clock
    and max_regression <= grace and #identity <= 64 and find(identity, '^1:cb:') and server_now <= 4398046511104
    and (threshold > 0 and buckets + bucket_width + minimum_calls + rate_permille == 0
      or threshold == 0 and buckets > 0 and bucket_width > 0 and minimum_calls > 0 and rate_permille > 0
        and buckets * bucket_width <= 3155760000000)
end

local MOST_CALLS = 450359962737
local key, now, lifetime = KEYS[1], server_now, 0
local state, last, since, failures, successes = 'closed', 0, 0, 0, 0
local probes, ring = {}, {}
local fresh = true

local function shortest(text, low, high)
  local n = uint(text, low, high)
  if n and format('%.0f', n) == text then return n end
end

local function parse(read)
  last = shortest(read[2], 0, 4398046511104)
  state = read[3]
  since = last and shortest(read[4], 0, last)
  failures = shortest(read[5], 0, state == 'closed' and threshold > 0 and threshold - 1 or 0)
  successes = shortest(read[6], 0, state == 'half-open' and probe_successes - 1 or 0)
  if read[1] ~= identity or not (since and failures and successes)
    or state ~= 'closed' and state ~= 'open' and state ~= 'half-open' then
    return false
  end
  for i = 1, max_probes do
    local text = read[6 + i]
    if text ~= '-' then
      local expiry, token = match(text or '', '^(%d+):([0-9a-f]+)$')
      expiry = shortest(expiry, since + 1, last + probe_lease)
      if not expiry or #token ~= 32 or state ~= 'half-open' then return false end
      probes[i] = {expiry, token}
    end
  end
  for i = 1, buckets do
    local text = read[6 + max_probes + i]
    if text ~= '-' then
      local id, calls, failed = match(text or '', '^(%d+):(%d+):(%d+)$')
      id = shortest(id, 0, floor(last / bucket_width))
      calls = shortest(calls, 1, MOST_CALLS)
      failed = calls and shortest(failed, 0, calls)
      if not (id and failed) or id - floor(id / buckets) * buckets ~= i - 1 or state ~= 'closed' then return false end
      ring[i] = {id, calls, failed}
    end
  end
  return true
end

local function load()
  if clock > 0 then
    server_now, now = clock, clock
    identity = identity .. ':sim'
  end
  lifetime = buckets * bucket_width
  if lifetime < open_timeout then lifetime = open_timeout end
  if lifetime < probe_lease then lifetime = probe_lease end
  lifetime = lifetime + grace
  local names = {'m', 'l', 's', 'o', 'f', 'k'}
  for i = 1, max_probes do names[6 + i] = format('p%.0f', i) end
  for i = 1, buckets do names[6 + max_probes + i] = format('b%.0f', i) end
  local read = redis.pcall('HMGET', key, unpack(names))
  if read.err then
    if find(read.err, '^WRONGTYPE') then return 'STATE_INCOMPATIBLE' end
    return nil, read
  end
  local found = false
  for i = 1, #names do found = found or read[i] end
  if not found then return not absent(key) and 'STATE_INCOMPATIBLE' or nil end
  if not parse(read) then return 'STATE_INCOMPATIBLE' end
  if last > now then
    if last - max_regression > now then return 'CLOCK_UNSAFE' end
    now = last
  end
  fresh = now - last >= lifetime
  if fresh then
    state, since, failures, successes, probes, ring = 'closed', 0, 0, 0, {}, {}
  elseif state == 'open' and now >= since + open_timeout then
    state, since = 'half-open', since + open_timeout
  end
end

local function waiting()
  if state == 'open' then return since + open_timeout - server_now end
  if state == 'closed' then return 0 end
  local earliest = 9007199254740991
  for i = 1, max_probes do
    local probe = probes[i]
    if not probe or probe[1] <= now then return 0 end
    if probe[1] < earliest then earliest = probe[1] end
  end
  return earliest - server_now
end

local function save(fields)
  local ttl = now + lifetime - server_now
  if clock > 0 and ttl < 86400000 then ttl = 86400000 end
  ttl = format('%.0f', ttl)
  local found = redis.call('PEXPIRE', key, ttl)
  redis.call('HSET', key, 'l', format('%.0f', now), unpack(fields))
  if found == 0 then redis.call('PEXPIRE', key, ttl) end
end

local function save_all()
  local fields = {'m', identity, 's', state, 'o', format('%.0f', since), 'f', format('%.0f', failures),
    'k', format('%.0f', successes)}
  local n = #fields
  for i = 1, max_probes do
    local probe = probes[i]
    fields[n + 1] = format('p%.0f', i)
    fields[n + 2] = probe and format('%.0f:%s', probe[1], probe[2]) or '-'
    n = n + 2
  end
  for i = 1, buckets do
    local bucket = ring[i]
    fields[n + 1] = format('b%.0f', i)
    fields[n + 2] = bucket and format('%.0f:%.0f:%.0f', bucket[1], bucket[2], bucket[3]) or '-'
    n = n + 2
  end
  save(fields)
end

local function enter(word)
  state, since, failures, successes, probes, ring = word, now, 0, 0, {}, {}
end
