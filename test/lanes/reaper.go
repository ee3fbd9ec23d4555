package lanes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// reapEnv makes a copy of the test binary a reaper instead of a test run.
const reapEnv = "EDGELIMIT_TEST_REAP"

// reaper is a copy of the test binary that waits for this process to be gone,
// however it went, and then removes the containers it was told of. A pipe tells
// it: the kernel closes it with the process.
var reaper struct {
	sync.Mutex
	in io.Writer
}

// reapLater hands a container to the reaper.
func reapLater(id string) error {
	reaper.Lock()
	defer reaper.Unlock()
	if reaper.in == nil {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the test binary: %w", err)
		}
		cmd := exec.Command(self, "-test.run=^$")
		cmd.Env = append(os.Environ(), reapEnv+"=1")
		// A group of its own: an interrupt from the terminal must not reach it.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, err := cmd.StdinPipe()
		if err != nil {
			return fmt.Errorf("start the reaper: %w", err)
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start the reaper: %w", err)
		}
		reaper.in = in
	}
	if _, err := fmt.Fprintln(reaper.in, id); err != nil {
		return fmt.Errorf("tell the reaper: %w", err)
	}
	return nil
}

// reap runs in the copy: it reads IDs until the pipe closes.
func reap(in io.Reader) int {
	var ids []string
	for lines := bufio.NewScanner(in); lines.Scan(); {
		ids = append(ids, lines.Text())
	}
	cli, err := engine()
	if err != nil {
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code := 0
	for _, id := range ids {
		// Usually it is gone already, which is an error that says nothing.
		if _, err := cli.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			code = 1
		}
	}
	return code
}
