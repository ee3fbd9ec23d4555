package lanes

import "os/exec"

// Spawn starts a command of a test, such as a program under test, in a process
// group of its own. On Linux it is killed when the test process ends in any way.
// Waiting for it is the caller's.
func Spawn(cmd *exec.Cmd) error { return spawn(cmd) }
