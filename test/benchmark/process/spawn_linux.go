package process

import "syscall"

// attributes give the program a group of its own, so that an interrupt of the terminal reaches the
// benchmark alone, which ends the program; and let the kernel end it when the thread that started it
// ends, as it does when the benchmark is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
