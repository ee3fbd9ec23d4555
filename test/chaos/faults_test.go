package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// disturbance is a fault of the schedule.
type disturbance struct {
	name string
	// begin makes the fault and gives what ends it. Chances are taken from r alone, so that a seed gives
	// the same faults again.
	begin func(b *bench, r *rand.Rand) (end func())
	// gives is the incompatibility that the fault may make, as word has it. In all others there is none.
	gives string
}

// lost is the fate of what never arrives.
var lost = fate{kind: fateStall}

// dice are chances that many goroutines take.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(r *rand.Rand) *dice { return &dice{r: rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))} }

// fixed are chances that do not matter.
func fixed() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

// below is 0..n-1.
func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// often is true once in n times.
func (d *dice) often(n int) bool { return d.below(n) == 0 }

// onCommands gives one in n evaluations a fate.
func onCommands(n int, give func(b *bench, d *dice, c command) fate) func(*bench, *rand.Rand) func() {
	return func(b *bench, r *rand.Rand) func() {
		d := newDice(r)
		b.proxy.set(fault{command: func(c command) fate {
			if c.evaluates() && d.often(n) {
				return give(b, d, c)
			}
			return pass
		}})
		return b.proxy.lift
	}
}

// onReplies gives one in n replies to evaluations a fate.
func onReplies(n int, give func(b *bench, d *dice, raw []byte) fate) func(*bench, *rand.Rand) func() {
	return func(b *bench, r *rand.Rand) func() {
		d := newDice(r)
		b.proxy.set(fault{reply: func(c command, raw []byte) fate {
			if c.evaluates() && d.often(n) {
				return give(b, d, raw)
			}
			return pass
		}})
		return b.proxy.lift
	}
}

// bySettings changes settings of the server and back.
func bySettings(settings ...string) func(*bench, *rand.Rand) func() {
	return func(b *bench, _ *rand.Rand) func() {
		var before []string
		for i := 0; i < len(settings); i += 2 {
			reply, err := b.admin.ConfigGet(b.t.Context(), settings[i]).Result()
			if err != nil {
				b.t.Error(err)
			}
			before = append(before, settings[i], reply[settings[i]])
			b.do("CONFIG", "SET", settings[i], settings[i+1])
		}
		return func() {
			for i := 0; i < len(before); i += 2 {
				b.do("CONFIG", "SET", before[i], before[i+1])
			}
		}
	}
}

// byToxic leads connections through a proxy of the library.
func byToxic(what toxic) func(*bench, *rand.Rand) func() {
	return func(b *bench, _ *rand.Rand) func() {
		address, stop := startToxic(b.t, b.server.Addr, what)
		b.proxy.move(address)
		b.proxy.reset()
		return func() {
			b.proxy.move(b.server.Addr)
			b.proxy.reset()
			stop()
		}
	}
}

// disturbances lists the faults of the schedule. They are made between the provider and its server, or
// in the server itself.
func disturbances() []disturbance {
	return []disturbance{
		{name: "refuse", begin: func(b *bench, _ *rand.Rand) func() {
			b.proxy.refuse()
			b.proxy.reset()
			return func() { b.proxy.listen(b.t) }
		}},
		{name: "delay-command", begin: onCommands(2, func(b *bench, d *dice, _ command) fate {
			return fate{kind: fateDelay, delay: time.Duration(d.below(int(2 * b.timeout())))}
		})},
		{name: "delay-reply", begin: onReplies(2, func(b *bench, d *dice, _ []byte) fate {
			return fate{kind: fateDelay, delay: time.Duration(d.below(int(2 * b.timeout())))}
		})},
		{name: "late-command", begin: onCommands(2, func(*bench, *dice, command) fate { return fate{kind: fateHold} })},
		{name: "late-reply", begin: onReplies(2, func(*bench, *dice, []byte) fate { return fate{kind: fateHold} })},
		{name: "half-command", begin: onCommands(2, func(_ *bench, d *dice, c command) fate {
			return fate{kind: fateCut, bytes: d.below(len(c.raw))}
		})},
		{name: "cut-after-command", begin: onCommands(2, func(*bench, *dice, command) fate {
			return fate{kind: fateCut, bytes: all}
		})},
		{name: "reset-command", begin: onCommands(2, func(_ *bench, d *dice, c command) fate {
			return fate{kind: fateReset, bytes: d.below(len(c.raw) + 1)}
		})},
		{name: "stall-command", begin: onCommands(2, func(_ *bench, d *dice, c command) fate {
			return fate{kind: fateStall, bytes: d.below(len(c.raw) + 1)}
		})},
		{name: "half-reply", begin: onReplies(2, func(_ *bench, d *dice, raw []byte) fate {
			return fate{kind: fateCut, bytes: d.below(len(raw))}
		})},
		{name: "reset-reply", begin: onReplies(2, func(_ *bench, d *dice, raw []byte) fate {
			return fate{kind: fateReset, bytes: d.below(len(raw))}
		})},
		{name: "stall-reply", begin: onReplies(2, func(_ *bench, d *dice, raw []byte) fate {
			return fate{kind: fateStall, bytes: d.below(len(raw))}
		})},
		{name: "swallow-command", begin: onCommands(2, func(*bench, *dice, command) fate { return lost })},
		{name: "swallow-reply", begin: onReplies(2, func(*bench, *dice, []byte) fate { return lost })},
		{name: "black-hole", begin: func(b *bench, _ *rand.Rand) func() {
			b.proxy.set(fault{
				hole:    true,
				command: func(command) fate { return lost },
				reply:   func(command, []byte) fate { return lost },
			})
			return b.proxy.lift
		}},
		{name: "mute-greeting", begin: func(b *bench, _ *rand.Rand) func() {
			b.proxy.set(fault{reply: func(c command, _ []byte) fate {
				if c.greets() {
					return lost
				}
				return pass
			}})
			b.proxy.reset()
			return b.proxy.lift
		}},
		{name: "strange-reply", gives: "Incompatible REPLY", begin: onReplies(2, func(_ *bench, d *dice, _ []byte) fate {
			return fate{kind: fateInstead, instead: []byte(strange[d.below(len(strange))])}
		})},
		{name: "toxic-latency", begin: byToxic(toxic{kind: "latency", attributes: map[string]int{"latency": 150, "jitter": 150}})},
		{name: "toxic-timeout", begin: byToxic(toxic{kind: "timeout", attributes: map[string]int{"timeout": 50}})},
		{name: "toxic-reset", begin: byToxic(toxic{kind: "reset_peer", attributes: map[string]int{"timeout": 20}})},
		{name: "toxic-limit-commands", begin: byToxic(toxic{kind: "limit_data", upstream: true, attributes: map[string]int{"bytes": 1500}})},
		{name: "toxic-limit-replies", begin: byToxic(toxic{kind: "limit_data", attributes: map[string]int{"bytes": 6500}})},
		{name: "toxic-bandwidth", begin: byToxic(toxic{kind: "bandwidth", upstream: true, attributes: map[string]int{"rate": 4}})},

		{name: "kill", begin: func(b *bench, _ *rand.Rand) func() {
			b.kill()
			return b.server.Restart
		}},
		{name: "pause", begin: func(b *bench, _ *rand.Rand) func() {
			b.server.Pause()
			return b.server.Resume
		}},
		{name: "flush-scripts", begin: flushing},
		{name: "replica", begin: (*bench).demote},
		{name: "stale-replica", begin: func(b *bench, r *rand.Rand) func() {
			settings := bySettings("replica-serve-stale-data", "no", "replica-read-only", "no")(b, r)
			promote := b.demote(r)
			return func() { promote(); settings() }
		}},
		{name: "full", begin: bySettings("maxmemory-policy", "noeviction", "maxmemory", "1")},
		{name: "cannot-persist", begin: (*bench).cannotPersist},
		{name: "no-replicas", begin: bySettings("min-replicas-to-write", "1")},
		{name: "busy", begin: (*bench).busy},
		{name: "loading", begin: (*bench).load},
		{name: "no-permission", begin: func(b *bench, _ *rand.Rand) func() {
			b.do("ACL", "SETUSER", b.user, "-evalsha", "-eval")
			return func() { b.do("ACL", "SETUSER", b.user, "+@all") }
		}},
		// The sliding log has taken its metadata away by the time that the new one is refused.
		{name: "no-permission-inside", gives: "Incompatible STATE", begin: func(b *bench, _ *rand.Rand) func() {
			b.do("ACL", "SETUSER", b.user, "-hset", "-zadd")
			return func() { b.do("ACL", "SETUSER", b.user, "+@all") }
		}},
		{name: "wrong-password", begin: func(b *bench, _ *rand.Rand) func() {
			b.do("ACL", "SETUSER", b.user, "resetpass", ">another-password")
			b.do("CLIENT", "KILL", "USER", b.user)
			return func() { b.do("ACL", "SETUSER", b.user, "resetpass", ">"+password) }
		}},
		{name: "kill-clients", begin: (*bench).killClients},
		{name: "clock-back-a-little", begin: stepBack(time.Second)},
		{name: "clock-back", begin: stepBack(time.Hour)},
	}
}

// strange are replies that no rate program gives to what was asked.
var strange = []string{
	":1\r\n",
	"$-1\r\n",
	"+ALLOWED\r\n",
	"*0\r\n",
	"*7\r\n$7\r\nALLOWED\r\n:1\r\n:1\r\n:1\r\n:1\r\n:0\r\n$1\r\n1\r\n",
	"*7\r\n$7\r\nallowed\r\n:1\r\n:1\r\n:10000\r\n:1\r\n:0\r\n:1\r\n",
	"*7\r\n$7\r\nALLOWED\r\n:1\r\n:1\r\n:77\r\n:76\r\n:0\r\n:1\r\n",
}

// stepBack sets the server's clock back, and to the machine's again.
func stepBack(by time.Duration) func(*bench, *rand.Rand) func() {
	return func(b *bench, _ *rand.Rand) func() {
		// The keys must have seen the time before.
		time.Sleep(b.timeout() / 4)
		b.clock.SetOffset(-by)
		return func() { b.clock.SetOffset(0) }
	}
}

// whileIt calls f again and again until the returned function is called.
func whileIt(f func()) (end func()) {
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				f()
			}
		}
	})
	return func() {
		close(stop)
		done.Wait()
	}
}

// flushing empties the script cache again and again.
func flushing(b *bench, _ *rand.Rand) func() {
	return whileIt(func() { b.do("SCRIPT", "FLUSH") })
}

// killClients ends the provider's connections from the server's side, again and again.
func (b *bench) killClients(*rand.Rand) func() {
	return whileIt(func() { b.do("CLIENT", "KILL", "USER", b.user) })
}

// demote makes the server a replica of a master that is not there: it keeps its data.
func (b *bench) demote(*rand.Rand) func() {
	b.do("REPLICAOF", "127.0.0.1", "1")
	return func() { b.do("REPLICAOF", "NO", "ONE") }
}

// cannotPersist lets a snapshot fail: a directory stands where its file should.
func (b *bench) cannotPersist(*rand.Rand) func() {
	obstacle := filepath.Join(b.server.Dir, "dump.rdb")
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		b.t.Error(err)
	}
	b.do("CONFIG", "SET", "save", "86400 1000000")
	b.snapshot("err")
	return func() {
		if err := os.Remove(obstacle); err != nil {
			b.t.Error(err)
		}
		b.snapshot("ok")
		b.do("CONFIG", "SET", "save", "")
	}
}

// snapshot takes one and waits for how it ends.
func (b *bench) snapshot(status string) {
	b.t.Helper()
	b.do("BGSAVE")
	eventually(b.t, "a snapshot ends", func() error {
		text, err := b.admin.Info(b.t.Context(), "persistence").Result()
		if err != nil {
			return err
		}
		if !strings.Contains(text, "rdb_bgsave_in_progress:0") || !strings.Contains(text, "rdb_last_bgsave_status:"+status) {
			return errors.New(text)
		}
		return nil
	})
}

// busy lets a script run that does not end, and waits until the server says so to others.
func (b *bench) busy(*rand.Rand) func() {
	b.do("CONFIG", "SET", "busy-reply-threshold", "20")
	var script sync.WaitGroup
	script.Go(func() {
		err := b.admin.Eval(context.WithoutCancel(b.t.Context()), "while true do end", nil).Err()
		if err == nil || !strings.Contains(err.Error(), "killed") {
			b.t.Errorf("the script that does not end: %v", err)
		}
	})
	b.answers("-BUSY", "PING")
	return func() {
		// A killed script may have run again for a moment, where the server looks seldom.
		b.answers("+OK", "SCRIPT KILL")
		script.Wait()
	}
}

// load restarts the server with so slow a reading of its append-only file that it answers meanwhile.
func (b *bench) load(*rand.Rand) func() {
	// Between two looks at its clients it reads 1,024 commands.
	pipe := b.admin.Pipeline()
	for i := range 8192 {
		pipe.Do(b.t.Context(), "SET", fmt.Sprintf("ballast-%d", i), "")
	}
	if _, err := pipe.Exec(b.t.Context()); err != nil {
		b.t.Error(err)
	}
	b.settings("key-load-delay -3\n")
	b.kill()
	var restart sync.WaitGroup
	restart.Go(b.server.Restart)
	b.answers("-LOADING", "PING")
	return func() {
		restart.Wait()
		b.settings("")
	}
}

// kill ends the server as a crash would.
func (b *bench) kill() {
	b.t.Helper()
	pid := b.server.PID()
	b.server.Kill()
	if b.clock != nil {
		// What a crash keeps libfaketime from removing.
		for _, name := range []string{"faketime_shm_%d", "sem.faketime_sem_%d"} {
			_ = os.Remove(filepath.Join("/dev/shm", fmt.Sprintf(name, pid)))
		}
	}
}

// settings writes what the server reads when it starts.
func (b *bench) settings(text string) {
	b.t.Helper()
	if err := os.WriteFile(b.extra, []byte(text), 0o600); err != nil {
		b.t.Error(err)
	}
}

// answers sends a command of plain words until the reply begins as wanted.
func (b *bench) answers(want, line string) {
	b.t.Helper()
	eventually(b.t, line, func() error {
		c, err := net.Dial("tcp", b.server.Addr)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if _, err := io.WriteString(c, line+"\r\n"); err != nil {
			return err
		}
		reply, err := readReply(bufio.NewReader(c))
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(reply), want) {
			return fmt.Errorf("%q", reply)
		}
		return nil
	})
}

// deepFixed is an evaluation of a deep fixed window.
func deepFixed(subject string) request {
	return request{algorithm: ratelimit.AlgorithmFixedWindow, limit: deep, subject: subject, cost: 1}
}
