// Package property tests what shared-contract/algorithm promises over generated parameters, traffic
// and clocks, with pgregory.net/rapid. It stands here since shared-contract and its tests import the
// standard library alone.
package property
