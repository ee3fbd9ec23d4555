// Package report holds what a run measured, judges it against the targets of the project, and writes
// the page and the charts. Everything that it writes is computed from the data of a run: no figure and
// no verdict is typed. The data is kept as JSON beside the charts, so that the page can be written
// again, or differently, without measuring again.
package report
