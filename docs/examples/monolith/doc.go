// Command monolith is a modular monolith that limits one of its endpoints. It has two business
// modules (orders, catalog) and a web module, composed with fx and configured by its own koanf, of
// which edgelimit reads app.rate-limit alone. README.md beside it shows how to run it.
package main
