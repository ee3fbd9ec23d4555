package lanes

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// Ports of private servers lie below the range that the kernel takes outgoing
// ports from. In that range a client that redials a stopped server can be given
// the server's own port and connect to itself, or keep the server from coming
// back.
const (
	firstPort = 20000
	portCount = 12000
)

var portsGiven atomic.Uint32

// freePort is a loopback port that nothing listens on. Test processes begin at
// different places, so that they seldom meet.
func freePort() (int, error) {
	for range 200 {
		step := uint64(portsGiven.Add(1))
		port := firstPort + int((uint64(os.Getpid())*101+step)%portCount)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, err
		}
		return port, nil
	}
	return 0, errors.New("no free loopback port")
}
