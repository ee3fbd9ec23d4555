//go:build !linux

package lanes

import (
	"os/exec"
	"syscall"
)

// spawn starts a command. Only Linux has a parent-death signal; elsewhere a
// server outlives a test process that is killed.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
