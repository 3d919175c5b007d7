package edge

import (
	"container/list"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app/base/limit"
)

// LimitConnections returns listener for server with at most so many open
// connections. When all are taken, the one that has been idle the longest is
// closed; when none is idle, the next client waits. What is not an HTTP request
// is answered like any other mistake. Requests that change something wait for
// one of the slots to compute, unless that is nil, before they are parsed.
func LimitConnections(server *http.Server, listener net.Listener, most int, compute *limit.Slots) net.Listener {
	l := &limitedListener{
		Listener: listener,
		compute:  compute,
		slots:    make(chan struct{}, most),
		closed:   make(chan struct{}),
		idle:     map[net.Conn]*list.Element{},
	}
	server.ConnState = l.follow
	trackAnswers(server)
	return l
}

// limitedListener learns from the server which connections are idle.
type limitedListener struct {
	net.Listener
	compute *limit.Slots
	slots   chan struct{} // one taken by each connection
	closed  chan struct{}
	once    sync.Once

	mu      sync.Mutex
	waiting bool                       // a connection waits for a slot
	order   list.List                  // of idle connections, longest idle first
	idle    map[net.Conn]*list.Element // in order

	takenOver atomic.Int64 // connections so far
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c = newWireConn(c, l.compute)
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

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
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
