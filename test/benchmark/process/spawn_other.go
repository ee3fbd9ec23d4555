//go:build !linux

package process

import "syscall"

// attributes are the usual ones: a benchmark that is killed leaves its programs behind.
func attributes() *syscall.SysProcAttr { return nil }
