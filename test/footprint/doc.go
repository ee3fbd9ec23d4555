// Package footprint measures what the programs cost on a real Redis: the memory of each kind of state,
// and the commands that each program sends. docs/guarantees.md shows both; the tests fail where it says
// something else. The package has tests only.
//
//	go test ./test/footprint -update -keys 1000    # measures anew and rewrites the two tables
package footprint
