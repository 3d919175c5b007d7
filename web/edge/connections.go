package edge

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app/base/limit"
)

// LimitConnections returns listener for server with the bounds of b. What is not an HTTP
// request is answered like any other error. Requests that change something wait for one
// of the slots to compute, unless that is nil, before they are parsed.
func LimitConnections(server *http.Server, listener net.Listener, b Bounds, compute *limit.Slots) net.Listener {
	l := &limitedListener{
		Listener: listener,
		compute:  compute,
		bounds:   b,
		time:     cmp.Or(server.ReadHeaderTimeout, silentTime),
		accepted: make(chan acceptance),
		slots:    make(chan struct{}, b.Connections),
		silent:   limit.Slots{Each: b.Strangers()},
		parked:   limit.Budget{All: b.Parked(), Share: b.Parked() * 3 / 4, Spent: errCrowded, ShareSpent: errCrowded},
		closed:   make(chan struct{}),
		idle:     map[net.Conn]*list.Element{},
	}
	server.ConnState = l.follow
	trackAnswers(server)
	return l
}

// Bounds are how many connections may be open. When all are taken, the one that has been
// idle the longest is closed; when none is idle, the next client waits. Of the connections
// that have not sent a whole request, one network may have some (Strangers); its others wait until
// one of those has, or is closed. A trusted proxy is not bounded: it sends the requests of many.
type Bounds struct {
	Connections int
	Trusted     []netip.Prefix
}

// Strangers is how many connections without a whole request one network may have, and how
// many requests without a key: a quarter, and not too few for a browser or two.
func (b Bounds) Strangers() int { return max(min(8, b.Connections), b.Connections/4) }

// Parked is how many connections may wait for others of their network.
func (b Bounds) Parked() int64 { return max(16, int64(b.Connections)) }

var errCrowded = errors.New("too many connections without a request")

// silentTime is how long a connection waits for those of its network by default.
const silentTime = 10 * time.Second

// limitedListener learns from the server which connections are idle.
type limitedListener struct {
	net.Listener
	compute  *limit.Slots
	bounds   Bounds
	time     time.Duration // that a connection may wait for those of its network
	accepted chan acceptance
	slots    chan struct{} // one taken by each connection
	silent   limit.Slots   // one taken by each that has not sent a whole request, by network
	parked   limit.Budget  // of those that wait for one
	start    sync.Once
	closed   chan struct{}
	once     sync.Once

	mu      sync.Mutex
	waiting bool                       // a connection waits for a slot
	order   list.List                  // of idle connections, longest idle first
	idle    map[net.Conn]*list.Element // in order

	takenOver atomic.Int64 // connections so far
}

// acceptance is what Accept returns.
type acceptance struct {
	conn net.Conn
	err  error
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	l.start.Do(func() { go l.receive() })
	var c net.Conn
	select {
	case a := <-l.accepted:
		if a.err != nil {
			return nil, a.err
		}
		c = a.conn
	case <-l.closed:
		return nil, net.ErrClosed
	}
	select {
	case l.slots <- struct{}{}:
		return c, nil
	default:
	}
	l.wait(true)
	defer l.wait(false)
	select {
	case l.slots <- struct{}{}:
		return c, nil
	case <-l.closed:
		_ = c.Close() // the client has sent nothing that was accepted
		return nil, net.ErrClosed
	}
}

// receive accepts connections until the listener is closed. It does not wait for those of
// a network that has too many, so that others get past them.
func (l *limitedListener) receive() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			l.handOver(acceptance{err: err})
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		w, plain := newWireConn(c, l.compute)
		network := l.network(c)
		if !plain || network == "" {
			l.handOver(acceptance{conn: w})
			continue
		}
		if release, ok := l.silent.Try(network); ok {
			w.(*wireConn).silent.Store(&release)
			l.handOver(acceptance{conn: w})
			continue
		}
		unpark, err := l.parked.One(network)
		if err != nil {
			reset(c)
			continue
		}
		go func() {
			defer unpark()
			l.park(w.(*wireConn), network)
		}()
	}
}

// park keeps a connection until its network has fewer that have not sent a whole request.
func (l *limitedListener) park(c *wireConn, network string) {
	ctx, cancel := context.WithTimeout(context.Background(), l.time)
	defer cancel()
	release, err := l.silent.Take(ctx, network)
	if err != nil {
		reset(c.TCPConn)
		return
	}
	c.silent.Store(&release)
	l.handOver(acceptance{conn: c})
}

// reset closes a connection from which nothing was read, as cheaply as can be: clients that
// hold too many open them again at once.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// handOver gives Accept its result.
func (l *limitedListener) handOver(a acceptance) {
	select {
	case l.accepted <- a:
	case <-l.closed:
		if a.conn != nil {
			_ = a.conn.Close()
		}
	}
}

// network names where a connection comes from, "" if that is a trusted proxy.
func (l *limitedListener) network(c net.Conn) string {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil || contains(l.bounds.Trusted, from.Addr().Unmap()) {
		return ""
	}
	return networkOf(from.Addr().Unmap())
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.silent.Close(net.ErrClosed)
	})
	return l.Listener.Close()
}

// wait notes whether a connection waits for a slot, and if so closes the one
// that has been idle the longest.
func (l *limitedListener) wait(waiting bool) {
	l.mu.Lock()
	l.waiting = waiting
	var longest net.Conn
	if waiting && l.order.Len() > 0 {
		longest = l.order.Remove(l.order.Front()).(net.Conn)
		delete(l.idle, longest)
	}
	l.mu.Unlock()
	if longest != nil {
		hangUp(longest)
	}
}

// follow implements http.Server.ConnState.
func (l *limitedListener) follow(c net.Conn, state http.ConnState) {
	if state == http.StateIdle {
		answered(c)
	}
	if state != http.StateNew {
		markHeard(c)
	}
	l.mu.Lock()
	if e := l.idle[c]; e != nil {
		l.order.Remove(e)
		delete(l.idle, c)
	}
	surplus := state == http.StateIdle && l.waiting
	if state == http.StateIdle && !l.waiting {
		l.idle[c] = l.order.PushBack(c)
	}
	l.mu.Unlock()
	switch {
	case surplus:
		hangUp(c)
	case state == http.StateHijacked:
		c.(*wireConn).closed = func() { <-l.slots } // others cannot become a Line
		l.collect()
	case state == http.StateClosed:
		<-l.slots
	}
}

// collectEvery is the number of connections taken over whose buffers, 1 MiB, are worth
// a collection of garbage. Clients that then do nothing but listen cause none.
const collectEvery = 128

func (l *limitedListener) collect() {
	if l.takenOver.Add(1)%collectEvery == 0 {
		runtime.GC()
	}
}

// hangUp closes an idle connection. The server notices and reports StateClosed.
func hangUp(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond)) // for the close_notify of TLS
	_ = c.Close()                                             // no answer is under way
}
