package chaos

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// clog listens at an address and takes nothing from the kernel, whose queue is full: dials there get no
// answer at all.
func clog(t testing.TB, address string) (unclog func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	raw, err := listener.(*net.TCPListener).SyscallConn() //nolint:forcetypeassert // Listen "tcp" gives nothing else.
	if err == nil {
		if failed := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }); failed != nil {
			err = failed
		}
	}
	if err != nil {
		t.Error(err)
	}
	var taken []net.Conn
	for range 16 {
		c, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err != nil {
			break
		}
		taken = append(taken, c)
	}
	return func() {
		for _, c := range taken {
			_ = c.Close()
		}
		_ = listener.Close()
	}
}
