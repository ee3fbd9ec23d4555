package contender

import "github.com/edgelimit/edgelimit/shared-contract/ratelimit"

// OverRedis lists what is compared over Redis, in the order of tables.
func OverRedis() []Contender {
	all := []Contender{Plain(), AutoPipeline(), Rueidis()}
	for _, algorithm := range algorithms() {
		all = append(all, OwnRedis(algorithm))
	}
	return append(all, OwnUncoalesced(), OwnDenialCache(), RedisRate(), Throttled(), Ulule())
}

// InMemory lists what is compared in memory, in the order of tables.
func InMemory() []Contender {
	all := []Contender{Clock()}
	for _, algorithm := range algorithms() {
		all = append(all, OwnMemory(algorithm))
	}
	return append(all, XTime(), GoLimiter(), Failsafe(), ThrottledMemory(), UluleMemory())
}

// algorithms are ours, the token bucket first, which the targets are of.
func algorithms() []ratelimit.Algorithm {
	all := []ratelimit.Algorithm{ratelimit.AlgorithmTokenBucket}
	for _, algorithm := range ratelimit.Algorithms() {
		if algorithm != ratelimit.AlgorithmTokenBucket {
			all = append(all, algorithm)
		}
	}
	return all
}

// Absent is a peer that could not be compared, and why.
type Absent struct{ Name, Why string }

// NotCompared lists peers that were looked for.
func NotCompared() []Absent {
	return []Absent{
		{"github.com/redis/rueidis/rueidislimiter", "the module proxy does not serve it; its client is in the table as a reference"},
		{"github.com/mennanov/limiters", "the module proxy does not serve it"},
		{"github.com/sethvargo/go-redisstore", "the module proxy does not serve it"},
		{"github.com/go-chi/httprate-redis", "the module proxy does not serve it"},
		{"github.com/zeromicro/go-zero/core/limit", "it comes with a client of its own, whose number of connections cannot be set"},
		{"go.uber.org/ratelimit", "it makes callers wait and never denies, so there is no decision to compare"},
	}
}
