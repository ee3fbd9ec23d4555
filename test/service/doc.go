// Package service tests the program as people run it: `edgelimit` is built once, its processes serve
// on loopback, and callers speak HTTP to them, while the Redis behind is flushed, restarted, paused,
// demoted, filled up or led back in time.
//
// What is held here is what only whole processes can show: several instances count as one, every
// answer is one that docs/http-api.md knows, nothing hangs, nothing is lost at SIGTERM, and no
// subject is in a log, a key or the traffic. What a decision is belongs to shared-contract/contracttest,
// and how failures are classified to adapter/outbound/cacheredis.
//
// The program is built with the race detector where the tests are. Times are bounds that only a
// machine at a standstill can break; nothing is concluded from how fast something was. Every process
// ends with its test, also after a panic.
package service
