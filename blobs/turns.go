package blobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
)

// turns lets one request at a time work on what has arrived of an upload in parts. A
// newer request ends the writer before it, whose connection may be dead without
// anybody knowing.
type turns struct {
	mu sync.Mutex
	of map[app.UploadID]*queue
}

// queue is the requests of one upload.
type queue struct {
	busy    chan struct{} // holds the one that works
	waiting int           // that work or wait
	writer  *turn         // the newest, nil if it was ended
}

// turn is a request that writes.
type turn struct {
	interrupt func()
	ended     chan struct{} // closed once a newer request has come
}

var errSuperseded = errors.New("a newer request goes on with the upload")

// take waits until no other request works on the upload. interrupt ends the request's
// own reading when a newer one comes; nil is one that ends by itself.
func (t *turns) take(ctx context.Context, id app.UploadID, interrupt func()) (release func(), err error) {
	mine := &turn{interrupt, make(chan struct{})}
	q := t.join(id, mine)
	timeout := time.NewTimer(finishTime)
	defer timeout.Stop()
	select {
	case q.busy <- struct{}{}:
		return func() {
			<-q.busy
			t.leave(id, q, mine)
		}, nil
	case <-mine.ended:
		err = abortError{errSuperseded}
	case <-ctx.Done():
		err = abortError{ctx.Err()}
	case <-timeout.C:
		err = fault.Errorf(fault.Unavailable, "An earlier request still writes what it received of this upload; try again in a moment.")
	}
	t.leave(id, q, mine)
	return nil, err
}

// join ends the writer before and waits in line.
func (t *turns) join(id app.UploadID, mine *turn) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.of[id]
	if q == nil {
		q = &queue{busy: make(chan struct{}, 1)}
		t.of[id] = q
	}
	q.waiting++
	if q.writer != nil {
		close(q.writer.ended)
		q.writer.interrupt() // its request lasts until it leaves
		q.writer = nil
	}
	if mine.interrupt != nil {
		q.writer = mine
	}
	return q
}

func (t *turns) leave(id app.UploadID, q *queue, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.writer == mine {
		q.writer = nil
	}
	if q.waiting--; q.waiting == 0 {
		delete(t.of, id)
	}
}
