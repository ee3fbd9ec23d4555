package cli

import (
	"errors"
	"fmt"
)

// The exit codes of the program.
const (
	ExitOK           = 0
	ExitFailure      = 1
	ExitUsage        = 2
	ExitDenied       = 3
	ExitNotEvaluated = 4
	ExitIncompatible = 5
)

// exitError ends the program with a code. An empty one has been told already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage is an error of whoever typed the command.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: ExitUsage, err: err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// silent ends with a code and says nothing.
func silent(code int) error {
	if code == ExitOK {
		return nil
	}
	return &exitError{code: code}
}

// codeOf gives the exit code of an error, and whether it still has to be told.
func codeOf(err error) (code int, tell bool) {
	if err == nil {
		return ExitOK, false
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		return ExitFailure, true
	}
	var joined interface{ Unwrap() []error }
	beside := errors.As(err, &joined) && exit.err == nil // there is more than what was told
	return exit.code, exit.err != nil || beside
}

// also adds what went wrong at the end to what went wrong before. It keeps err as it is where nothing
// did, which errors.Join would not.
func also(err, end error) error {
	if end == nil {
		return err
	}
	return errors.Join(err, end)
}
