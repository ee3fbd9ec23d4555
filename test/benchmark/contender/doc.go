// Package contender holds everything that is compared, each behind [Decider]: edgelimit through its
// port, other libraries through theirs, and references that bound what can be reached.
//
// What makes a comparison fair is here and nowhere else: every contender over Redis has the same
// server, the same number of connections, the same go-redis where it uses go-redis, and its own
// defaults for all else; every contender has the same limit (see the constants), the same keys chosen
// in the same way, keys or subjects made beforehand, and its result read as far as "may this pass".
//
// A peer that knows no keys (golang.org/x/time/rate, failsafe-go) stands behind a sync.Map from key to
// limiter, which is what a program that uses it must write.
package contender
