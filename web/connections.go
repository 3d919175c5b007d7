package web

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"time"
)

// BoundConnections gives listener for server, with at most so many
// connections open at once. Where all are taken, one that is not in use makes
// room, the longest unused first; where all are in use, the next client waits
// to be let in. What clients send that is no request is answered like any
// other mistake.
func BoundConnections(server *http.Server, listener net.Listener, most int) net.Listener {
	b := &boundListener{
		Listener: listener,
		room:     make(chan struct{}, most),
		closed:   make(chan struct{}),
		idle:     map[net.Conn]*list.Element{},
	}
	server.ConnState = b.follow
	followAnswers(server)
	return b
}

// boundListener knows from the server what each connection does.
type boundListener struct {
	net.Listener
	room   chan struct{} // one taken by each connection
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	wanting bool // a connection waits for room
	order   list.List
	idle    map[net.Conn]*list.Element // of order, longest unused first
}

// Accept implements net.Listener.
func (b *boundListener) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c = onWire(c)
	select {
	case b.room <- struct{}{}:
		return c, nil
	default:
	}
	b.want(true)
	defer b.want(false)
	select {
	case b.room <- struct{}{}:
		return c, nil
	case <-b.closed:
		_ = c.Close() // it was promised nothing
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (b *boundListener) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// want says whether room is wanted, and makes some if so.
func (b *boundListener) want(wanting bool) {
	b.mu.Lock()
	b.wanting = wanting
	var longest net.Conn
	if wanting && b.order.Len() > 0 {
		longest = b.order.Remove(b.order.Front()).(net.Conn)
		delete(b.idle, longest)
	}
	b.mu.Unlock()
	if longest != nil {
		hangUp(longest)
	}
}

// follow is told by the server what a connection does from now on.
func (b *boundListener) follow(c net.Conn, state http.ConnState) {
	if state == http.StateIdle {
		rested(c)
	}
	b.mu.Lock()
	if e := b.idle[c]; e != nil {
		b.order.Remove(e)
		delete(b.idle, c)
	}
	unwanted := state == http.StateIdle && b.wanting
	if state == http.StateIdle && !b.wanting {
		b.idle[c] = b.order.PushBack(c)
	}
	b.mu.Unlock()
	switch {
	case unwanted:
		hangUp(c)
	case state == http.StateClosed || state == http.StateHijacked:
		<-b.room
	}
}

// hangUp closes an unused connection. The server notices and says StateClosed.
func hangUp(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond)) // TLS says goodbye, if the client listens
	_ = c.Close()                                             // nothing is on its way
}
