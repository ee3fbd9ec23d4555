// Package rules reads the YAML rules of envoyproxy/ratelimit and makes a policy of each: a tree in
// which descriptors find their rule, and the policies that a provider decides by.
//
//	loaded, err := rules.Parse(files, rules.Options{CleanupGrace: 5 * time.Second, MaxClockRegression: 2 * time.Second})
//	match := loaded.Find("edge", []rules.Entry{{Key: "remote_address", Value: "192.0.2.7"}})
//
// # Where the meaning comes from
//
// A file that envoyproxy/ratelimit loads means the same here, but for the differences that
// docs/envoy.md names. What has no exact counterpart is refused. What loads and has no effect here is
// listed by [Rules.Notes], so that nobody believes in a switch that does nothing.
//
// Beside rate_limit, a descriptor may have a block of our own:
//
//	edgelimit:
//	  algorithm: token-bucket   # instead of fixed-window
//	  burst: 20                 # of token-bucket and gcra; requests_per_unit where absent
//	  max_cost: 5               # the greatest hits_addend; what the rule can admit at once where absent
//
// # Policies
//
// A policy's ID is that of its place: domain, keys and values. Its revision is derived from its
// parameters, so that a rule that changes starts afresh and one that does not goes on where it was,
// whatever changes around it. Two parameters of one rule have the same revision once in 2^31 changes;
// stored state carries the parameters' fingerprint as well, so the rule is then incompatible with its
// old state until that expires, and never wrong.
//
// A policy's ID holds domain and keys in readable form, and of values only a part of a hash: what is
// in a policy's ID reaches metrics, logs and keys.
//
// # Errors
//
// [Parse] gives an *[Error] with every fault of every file, each with its file, line and path in the
// document.
//
// # What it is not
//
// It reads no directory, watches nothing and decides nothing.
//
// # Bounds
//
// At most [MaxRules] descriptors, [MaxDepth] deep. Reading takes time in proportion to a file's size:
// aliases and merge keys count as often as they are used, and what stands for too much is refused. At
// most 1000 faults are told.
//
// # Concurrency
//
// Rules do not change once they are made and are safe for concurrent use.
package rules
