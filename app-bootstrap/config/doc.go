// Package config turns koanf configuration into typed, judged settings of the limiter, of a cache and
// of the standalone service.
//
// There are two ways in. A host application hands over its own koanf, which is read strictly below
// our sections and nowhere else; the standalone program is given a file, the environment and flags,
// and there everything unknown is an error:
//
//	cfg, err := config.RateLimitFromKoanf(k)                     // app.rate-limit of a host
//	cfg, err := config.CacheFromKoanf(k)                         // app.cache.redis
//	cfg, err := config.FromKoanf(k)                              // both, and app.service
//	cfg, err := config.Load(config.Source{File: "edgelimit.yaml", Environ: os.Environ()})
//
// # Errors
//
// An error is an *[Error]. It lists every fault at once, sorted by path; each names the key's path
// and what is allowed there. No fault repeats a secret or the content of a file. A section that is
// off (enabled: false) is decoded strictly, so that unknown keys and wrong types are found, but what
// it says is not judged: no range, no required key, no file.
//
// # What it is not
//
// It starts nothing, connects to nothing and keeps no global state. It reads the files that the
// configuration names (secrets, certificates) once. Nothing is watched or reloaded.
//
// # Where things are
//
// The keys stand in tables (keys.go, cachekeys.go, and connection.go for what every connection to a
// Redis has), the algorithms and their parameters in another (algorithms.go). Decoding, the
// environment, [Reference] and docs/configuration.md all come from these.
//
// # Concurrency
//
// All functions are safe for concurrent use. A Config is not changed after it was made.
package config

//go:generate go run ./internal/gendoc -example testdata/ok_full.yaml -out ../../docs/configuration.md
