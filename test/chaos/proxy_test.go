package chaos

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// fateKind is what becomes of a command or a reply on its way.
type fateKind uint8

const (
	_ fateKind = iota // the invalid zero value
	// fatePass: it arrives.
	fatePass
	// fateDelay: it arrives after a while, also where the client has gone by then.
	fateDelay
	// fateHold: it arrives when the fault is over, also where the client has gone by then.
	fateHold
	// fateCut: some bytes of it arrive, then the connection ends in order.
	fateCut
	// fateReset: some bytes of it arrive, then the client's connection is reset.
	fateReset
	// fateStall: some bytes of it arrive, then nothing more in this direction, and the connection stays.
	// A stream does not lose what stands in its middle, so what comes behind a lost byte is lost too.
	fateStall
	// fateInstead: something else takes its place; a command is then answered and not passed on.
	fateInstead
)

// fate is a kind with its numbers. bytes beyond the length mean all of it.
type fate struct {
	kind    fateKind
	bytes   int
	delay   time.Duration
	instead []byte
}

var pass = fate{kind: fatePass}

// all is more bytes than any command or reply has.
const all = maxWire

// fault is what a proxy does. What is nil passes. The functions are called by many goroutines.
type fault struct {
	command func(c command) fate
	reply   func(c command, reply []byte) fate
	// deaf keeps the client's connection open and silent where the server's has ended, as a lost route
	// does.
	deaf bool
	// hole takes connections, leads them nowhere and answers nothing.
	hole bool
}

// activeFault is a fault with its end.
type activeFault struct {
	fault
	over chan struct{}
}

// receipt is what the server was told: a command's name and, for evaluations, the state key.
type receipt struct{ name, key string }

// proxy leads connections to a Redis and knows where commands and replies begin and end. It notes every
// command that it passed on in whole.
type proxy struct {
	address string

	mu       sync.Mutex
	upstream string
	listener net.Listener
	active   *activeFault
	links    map[*link]struct{}
	dialed   int // connections accepted so far
	received map[receipt]int
	unknown  map[string]int // replies by state key that were NOSCRIPT
	pumps    sync.WaitGroup
}

// startProxy listens on loopback until the test ends.
func startProxy(t testing.TB, upstream string) *proxy {
	t.Helper()
	p := &proxy{
		upstream: upstream, links: map[*link]struct{}{}, received: map[receipt]int{}, unknown: map[string]int{},
		active: &activeFault{over: make(chan struct{})},
	}
	p.listen(t)
	t.Cleanup(func() {
		p.refuse()
		p.set(fault{})
		p.each(func(l *link) { l.end(false) })
		p.pumps.Wait()
	})
	return p
}

// listen accepts connections, again where refuse has ended that.
func (p *proxy) listen(t testing.TB) {
	t.Helper()
	address := p.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Errorf("the proxy: %v", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.address = l, l.Addr().String()
	p.pumps.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.lead(c)
		}
	})
}

// refuse stops to listen: connections are refused by the kernel. Those that are there stay.
func (p *proxy) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.listener.Close()
}

// set replaces the fault. What the one before held is released.
func (p *proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.active.over)
	p.active = &activeFault{fault: f, over: make(chan struct{})}
}

// lift ends the fault.
func (p *proxy) lift() { p.set(fault{}) }

// move leads new connections to another server.
func (p *proxy) move(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

func (p *proxy) current() *activeFault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active
}

// each calls f with every connection that is there.
func (p *proxy) each(f func(l *link)) {
	p.mu.Lock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		f(l)
	}
}

// reset resets every connection that is there.
func (p *proxy) reset() { p.each(func(l *link) { l.end(true) }) }

// open is the number of connections that are there.
func (p *proxy) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// accepted is the number of connections so far.
func (p *proxy) accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dialed
}

// count is how many commands of a name were passed on in whole, with a key or, for "", with any.
func (p *proxy) count(name, key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for r, times := range p.received {
		if r.name == name && (key == "" || r.key == key) {
			n += times
		}
	}
	return n
}

// evaluations is how many commands of a key were passed on, whether by digest or by source.
func (p *proxy) evaluations(key string) int { return p.count("EVALSHA", key) + p.count("EVAL", key) }

// noScripts is how many evaluations of a key the server answered that it does not know the program.
func (p *proxy) noScripts(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unknown[key]
}

// link is one connection of a client and the one behind it.
type link struct {
	proxy  *proxy
	number int // in the order of accepting, from 1
	client *net.TCPConn
	server net.Conn // nil where there is none
	done   chan struct{}
	once   sync.Once

	mu       sync.Mutex
	idle     sync.Cond // signalled where waiting has become empty
	waiting  []command // passed on and not answered yet
	commands int       // evaluations that the client sent here
}

// lead takes a connection of a client.
func (p *proxy) lead(client net.Conn) {
	p.mu.Lock()
	p.dialed++
	l := &link{proxy: p, number: p.dialed, client: client.(*net.TCPConn), done: make(chan struct{})} //nolint:forcetypeassert // A TCP listener gives nothing else.
	l.idle.L = &l.mu
	p.links[l] = struct{}{}
	upstream, hole := p.upstream, p.active.hole
	p.mu.Unlock()
	if hole {
		p.pumps.Go(func() {
			l.drain()
			l.end(false)
		})
		return
	}
	p.pumps.Go(func() {
		server, err := net.Dial("tcp", upstream)
		if err != nil {
			l.end(true)
			return
		}
		l.mu.Lock()
		l.server = server
		l.mu.Unlock()
		select {
		case <-l.done:
			_ = server.Close()
			return
		default:
		}
		p.pumps.Go(l.down)
		l.up()
	})
}

// end closes both sides, the client's with a reset where asked.
func (l *link) end(reset bool) {
	l.once.Do(func() {
		close(l.done)
		if reset {
			_ = l.client.SetLinger(0)
		}
		_ = l.client.Close()
		l.mu.Lock()
		if l.server != nil {
			_ = l.server.Close()
		}
		l.idle.Broadcast()
		l.mu.Unlock()
		l.proxy.mu.Lock()
		delete(l.proxy.links, l)
		l.proxy.mu.Unlock()
	})
}

// up leads commands from the client to the server.
func (l *link) up() {
	reader := bufio.NewReader(l.client)
	for {
		c, err := readCommand(reader)
		if err != nil {
			l.end(false)
			return
		}
		if c.evaluates() {
			l.mu.Lock()
			l.commands++
			l.mu.Unlock()
		}
		active := l.proxy.current()
		f := pass
		if active.command != nil {
			f = active.command(c)
		}
		if !l.forward(active, f, c) {
			return
		}
	}
}

// forward does to a command what its fate is, and reports whether the connection goes on.
func (l *link) forward(active *activeFault, f fate, c command) bool {
	whole := c.raw
	switch f.kind {
	case fatePass:
	case fateDelay:
		l.sleep(f.delay)
	case fateHold:
		l.await(active.over)
	case fateCut, fateReset, fateStall:
		whole = whole[:min(f.bytes, len(whole))]
	case fateInstead:
		// Answers come in order.
		l.mu.Lock()
		for len(l.waiting) > 0 && !l.over() {
			l.idle.Wait()
		}
		l.mu.Unlock()
		_, err := l.client.Write(f.instead)
		return err == nil
	}
	if len(whole) == len(c.raw) {
		l.mu.Lock()
		l.waiting = append(l.waiting, c)
		l.mu.Unlock()
		l.proxy.mu.Lock()
		l.proxy.received[receipt{c.name(), c.key()}]++
		l.proxy.mu.Unlock()
	}
	if _, err := l.server.Write(whole); err != nil {
		if active.deaf {
			l.drain()
		}
		l.end(false)
		return false
	}
	switch f.kind { //nolint:exhaustive // The others go on.
	case fateCut, fateReset:
		l.end(f.kind == fateReset)
		return false
	case fateStall:
		l.drain()
		l.end(false)
		return false
	}
	return true
}

// down leads replies from the server to the client.
func (l *link) down() {
	reader := bufio.NewReader(l.server)
	for {
		raw, err := readReply(reader)
		if err != nil {
			if l.proxy.current().deaf {
				return // The other direction ends the link.
			}
			l.end(false)
			return
		}
		l.mu.Lock()
		var c command
		if len(l.waiting) > 0 {
			c = l.waiting[0]
		}
		l.mu.Unlock()
		if c.evaluates() && bytes.HasPrefix(raw, []byte("-NOSCRIPT")) {
			l.proxy.mu.Lock()
			l.proxy.unknown[c.key()]++
			l.proxy.mu.Unlock()
		}
		active := l.proxy.current()
		f := pass
		if active.reply != nil {
			f = active.reply(c, raw)
		}
		if !l.deliver(active, f, raw) {
			return
		}
		l.mu.Lock()
		if len(l.waiting) > 0 {
			l.waiting = l.waiting[1:]
		}
		if len(l.waiting) == 0 {
			l.idle.Broadcast()
		}
		l.mu.Unlock()
	}
}

// deliver does to a reply what its fate is, and reports whether the connection goes on.
func (l *link) deliver(active *activeFault, f fate, raw []byte) bool {
	switch f.kind {
	case fatePass:
	case fateDelay:
		l.sleep(f.delay)
	case fateHold:
		l.await(active.over)
	case fateCut, fateReset, fateStall:
		raw = raw[:min(f.bytes, len(raw))]
	case fateInstead:
		raw = f.instead
	}
	if len(raw) > 0 {
		if _, err := l.client.Write(raw); err != nil {
			l.end(false)
			return false
		}
	}
	switch f.kind { //nolint:exhaustive // The others go on.
	case fateCut, fateReset:
		l.end(f.kind == fateReset)
		return false
	case fateStall:
		// What the server says is lost; what the client says goes on to the server.
		_, _ = io.Copy(io.Discard, l.server)
		return false
	}
	return true
}

// drain reads what the client sends until it goes.
func (l *link) drain() { _, _ = io.Copy(io.Discard, l.client) }

func (l *link) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// sleep waits for a while, or until the link is over.
func (l *link) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.done:
	}
}

// await waits until a fault is over, or the link is.
func (l *link) await(over <-chan struct{}) {
	select {
	case <-over:
	case <-l.done:
	}
}
