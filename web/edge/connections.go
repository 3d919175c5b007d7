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

// LimitConnections returns listener with the limits of b, for use by server. Input that
// is not an HTTP request gets an error response in the format of the API. POST requests
// wait for a slot of compute before they are parsed; a nil compute means no limit.
func LimitConnections(server *http.Server, listener net.Listener, b Bounds, compute *limit.Slots) net.Listener {
	l := &limitedListener{
		Listener: listener,
		compute:  compute,
		bounds:   b,
		time:     cmp.Or(server.ReadHeaderTimeout, silentTime),
		accepted: make(chan acceptance),
		slots:    make(chan struct{}, b.Connections),
		silent:   limit.Slots{Each: b.MaxAnonymous()},
		parked:   limit.Budget{All: b.Parked(), Share: b.Parked() * 3 / 4, Spent: errCrowded, ShareSpent: errCrowded},
		closed:   make(chan struct{}),
		idle:     map[net.Conn]*list.Element{},
	}
	server.ConnState = l.follow
	trackAnswers(server)
	return l
}

// Bounds limit the number of open connections. When all are in use, the longest-idle one
// is closed; if none is idle, the next client waits. One network can have only a limited
// number of connections without a complete request (MaxAnonymous); its further connections
// wait until one of them has sent a request or is closed. Trusted proxies are exempt,
// because they forward the requests of many clients.
type Bounds struct {
	Connections int
	Trusted     []netip.Prefix
}

// MaxAnonymous returns the maximum number of connections without a complete request from
// one network, which is also the maximum number of its requests without a key. It is a
// quarter of all connections, but enough for a browser or two.
func (b Bounds) MaxAnonymous() int { return max(min(8, b.Connections), b.Connections/4) }

// Parked returns how many connections can wait for other connections of their network.
func (b Bounds) Parked() int64 { return max(16, int64(b.Connections)) }

var errCrowded = errors.New("too many connections without a request")

// silentTime is the default time that a connection waits for other connections of its
// network.
const silentTime = 10 * time.Second

// limitedListener tracks which connections are idle, as the server reports.
type limitedListener struct {
	net.Listener
	compute  *limit.Slots
	bounds   Bounds
	time     time.Duration // how long a connection waits for others of its network
	accepted chan acceptance
	slots    chan struct{} // one taken per connection
	silent   limit.Slots   // one per connection without a complete request, by network
	parked   limit.Budget  // connections waiting for silent
	start    sync.Once
	closed   chan struct{}
	once     sync.Once

	mu      sync.Mutex
	waiting bool                       // connections waiting for a slot of silent
	order   list.List                  // idle connections, longest idle first
	idle    map[net.Conn]*list.Element // elements of order

	takenOver atomic.Int64 // total connections taken over
}

// acceptance is a result of Accept.
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
		_ = c.Close() // nothing from the client was accepted
		return nil, net.ErrClosed
	}
}

// receive accepts connections until the listener is closed. A network with too many
// connections does not block other networks.
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

// park holds a connection until its network has fewer connections without a complete
// request.
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

// reset closes a connection from which nothing was read, as cheaply as possible, because
// clients with too many connections reopen them at once.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// handOver passes a result to Accept.
func (l *limitedListener) handOver(a acceptance) {
	select {
	case l.accepted <- a:
	case <-l.closed:
		if a.conn != nil {
			_ = a.conn.Close()
		}
	}
}

// network returns the network that a connection comes from, or "" for a trusted proxy.
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

// wait records whether a connection is waiting for a slot. If so, it closes the
// longest-idle connection.
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
		markResponseDone(c)
	}
	if state != http.StateNew {
		markRequestRead(c)
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
		c.(*wireConn).closed = func() { <-l.slots } // only a wireConn can become a Line
		l.collect()
	case state == http.StateClosed:
		<-l.slots
	}
}

// collectEvery is the number of taken-over connections after which a garbage collection
// is worthwhile: their buffers take 1 MiB. Clients that then only listen would otherwise
// cause none.
const collectEvery = 128

func (l *limitedListener) collect() {
	if l.takenOver.Add(1)%collectEvery == 0 {
		runtime.GC()
	}
}

// hangUp closes an idle connection. The server detects this and reports StateClosed.
func hangUp(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond)) // for the TLS close_notify
	_ = c.Close()                                             // no response is in progress
}
