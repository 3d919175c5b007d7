package blobs

import (
	"context"
	"errors"
	"sync"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
)

// uploadWriters lets one request at a time write to a resumable upload. A newer request
// ends the previous writer, whose connection might be dead without the server having
// noticed.
type uploadWriters struct {
	slots limit.Slots // one per upload

	mu      sync.Mutex
	writers map[app.UploadID]*uploadWriter // newest writer of each upload, unless superseded
}

// uploadWriter is a request that writes.
type uploadWriter struct {
	interrupt func()
	stopWait  context.CancelCauseFunc
}

func newUploadWriters() *uploadWriters {
	return &uploadWriters{slots: limit.Slots{Each: 1}, writers: map[app.UploadID]*uploadWriter{}}
}

var (
	errSuperseded = errors.New("a newer request continues the upload")
	errOccupied   = fault.Errorf(fault.Unavailable, "An earlier request is still writing data of this upload; try again in a moment.")
)

// acquire waits until no other request works on the upload. interrupt stops reading this
// request when a newer one arrives; it is nil for a request that does not read a body.
func (t *uploadWriters) acquire(ctx context.Context, id app.UploadID, interrupt func()) (release func(), err error) {
	waiting, stop := context.WithTimeoutCause(ctx, finishTime, errOccupied)
	defer stop()
	waiting, stopWait := context.WithCancelCause(waiting)
	defer stopWait(nil)
	mine := &uploadWriter{interrupt, stopWait}
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

// supersede ends the previous writer.
func (t *uploadWriters) supersede(id app.UploadID, mine *uploadWriter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before := t.writers[id]; before != nil {
		before.stopWait(errSuperseded)
		before.interrupt() // safe to call, because a writer leaves before its request ends
		delete(t.writers, id)
	}
	if mine.interrupt != nil {
		t.writers[id] = mine
	}
}

func (t *uploadWriters) leave(id app.UploadID, mine *uploadWriter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writers[id] == mine {
		delete(t.writers, id)
	}
}
