//go:build !race

package service

// raceFlag builds the program as the tests are built.
const raceFlag = "-race=false"
