// Package isolation shows that the rate limiter's runtime and the cache have nothing in common: neither
// settings, nor a connection, nor a decorator. The package has tests only.
package isolation
