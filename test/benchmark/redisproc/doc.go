// Package redisproc gives a benchmark a Redis server of its own, without persistence, on loopback and
// a free port, ends it with the benchmark, and reads the server's own counters.
//
// Where EDGELIMIT_TEST_REDIS_ADDR names a server, that one is used as it is and neither flushed nor
// ended; its command statistics are reset. EDGELIMIT_TEST_REDIS_SERVER names another binary than the
// redis-server in PATH.
package redisproc
