// Package architecture holds the import rules of the house: who may import
// whom, each rule with its reason, checked over what go list reports for the
// whole module.
//
// The linter's depguard section says the same for direct imports, where an
// editor shows it; this test counts transitive dependencies as well, needs no
// tool beside go, and is itself tested against made-up violations. The package
// has tests only.
package architecture
