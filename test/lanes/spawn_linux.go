package lanes

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawner is a thread that never ends: the kernel sends a child its parent-death
// signal when the thread that started it ends, not only when the process does.
var spawner = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

// spawn starts a command that is killed when this process ends in any way.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
