// Package doors starts services that speak Envoy's rate-limit protocol, edgelimit's own and
// envoyproxy/ratelimit, over one Redis and with the same rules, and asks each through the same client.
//
// A service is a process of its own, on loopback, with as many connections to Redis as the others, and
// its own defaults for all else. Its client is the generated one of
// envoy.service.ratelimit.v3.RateLimitService over as many gRPC connections as there are cores; a
// request has one descriptor, made beforehand.
package doors
