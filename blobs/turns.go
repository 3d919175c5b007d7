package blobs

import (
	"context"
	"errors"
	"sync"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
)

// turns lets one request at a time work on what has arrived of an upload in parts. A
// newer request ends the writer before it, whose connection may be dead without
// anybody knowing.
type turns struct {
	slots limit.Slots // by upload

	mu      sync.Mutex
	writers map[app.UploadID]*turn // the newest of each upload that was not ended
}

// turn is a request that writes.
type turn struct {
	interrupt func()
	stopWait  context.CancelCauseFunc
}

func newTurns() *turns {
	return &turns{slots: limit.Slots{Each: 1}, writers: map[app.UploadID]*turn{}}
}

var (
	errSuperseded = errors.New("a newer request goes on with the upload")
	errOccupied   = fault.Errorf(fault.Unavailable, "An earlier request still writes what it received of this upload; try again in a moment.")
)

// take waits until no other request works on the upload. interrupt ends the request's
// own reading when a newer one comes; nil is one that ends by itself.
func (t *turns) take(ctx context.Context, id app.UploadID, interrupt func()) (release func(), err error) {
	waiting, stop := context.WithTimeoutCause(ctx, finishTime, errOccupied)
	defer stop()
	waiting, stopWait := context.WithCancelCause(waiting)
	defer stopWait(nil)
	mine := &turn{interrupt, stopWait}
	t.supersede(id, mine)
	end, err := t.slots.Take(waiting, string(id))
	switch {
	case err == nil:
		return func() { end(); t.leave(id, mine) }, nil
	case !errors.Is(err, errOccupied):
		err = abortError{err}
	}
	t.leave(id, mine)
	return nil, err
}

// supersede ends the writer before.
func (t *turns) supersede(id app.UploadID, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before := t.writers[id]; before != nil {
		before.stopWait(errSuperseded)
		before.interrupt() // its request lasts until it leaves
		delete(t.writers, id)
	}
	if mine.interrupt != nil {
		t.writers[id] = mine
	}
}

func (t *turns) leave(id app.UploadID, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writers[id] == mine {
		delete(t.writers, id)
	}
}
