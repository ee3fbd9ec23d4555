package process

import (
	"net"
	"strings"
	"testing"
)

func TestAProcessEnds(t *testing.T) {
	t.Parallel()
	p, err := Start("sh", []string{"-c", "echo begun $WORD; sleep 600"}, []string{"WORD=well"})
	if err != nil {
		t.Fatal(err)
	}
	if p.PID() < 2 {
		t.Errorf("PID %d", p.PID())
	}
	select {
	case <-p.Ended():
		t.Errorf("it ended by itself: %s", p.Output())
	default:
	}
	p.Stop()
	p.Stop() // does nothing more
	if _, open := <-p.Ended(); open {
		t.Error("it has not ended")
	}
}

func TestOutputIsKept(t *testing.T) {
	t.Parallel()
	p, err := Start("sh", []string{"-c", "echo begun $WORD"}, []string{"WORD=well"})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	if p.Output() != "begun well\n" {
		t.Errorf("%q", p.Output())
	}
	if _, err := Start("/nowhere/at/all", nil, nil); err == nil {
		t.Error("a program that is not there was started")
	}
}

func TestHeadIsBounded(t *testing.T) {
	t.Parallel()
	var h head
	for range 10 {
		if n, err := h.Write([]byte(strings.Repeat("x", mostOutput/3))); n != mostOutput/3 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := len(h.String()); got != mostOutput {
		t.Errorf("%d bytes kept, want %d", got, mostOutput)
	}
}

func TestFreeAddress(t *testing.T) {
	t.Parallel()
	address, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}
