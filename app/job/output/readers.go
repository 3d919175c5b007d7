package output

import (
	"context"
	"sync"
	"time"

	"molrun/app/base/fault"
)

// Bounds of reading whole files for series and tables.
const (
	maxRead    = 1 << 30 // bytes of a file
	readWait   = 30 * time.Second
	maxWaiting = 16 // of one holder
)

// readers bounds how many files are read as a whole at once: all together, and one
// by each holder of an API key, whose others wait for their turn.
type readers struct {
	slots chan struct{}

	mu    sync.Mutex
	turns map[string]*readTurn // by holder
}

type readTurn struct {
	busy  chan struct{} // holds one
	users int
}

func newReaders(atOnce int) *readers {
	return &readers{slots: make(chan struct{}, atOnce), turns: map[string]*readTurn{}}
}

// begin waits for the holder's turn and for a slot, until end is called.
func (r *readers) begin(ctx context.Context, holder string) (end func(), err error) {
	turn, err := r.enter(holder)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(readWait)
	defer timer.Stop()
	var taken []chan struct{}
	end = func() {
		for _, c := range taken {
			<-c
		}
		r.leave(holder, turn)
	}
	for _, c := range []chan struct{}{turn.busy, r.slots} {
		select {
		case c <- struct{}{}:
			taken = append(taken, c)
		case <-ctx.Done():
			end()
			return nil, ctx.Err()
		case <-timer.C:
			end()
			return nil, fault.Errorf(fault.Unavailable, "Too many series and tables are read at once; try again in a few seconds.")
		}
	}
	return end, nil
}

func (r *readers) enter(holder string) (*readTurn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn := r.turns[holder]
	if turn == nil {
		turn = &readTurn{busy: make(chan struct{}, 1)}
		r.turns[holder] = turn
	}
	if turn.users >= maxWaiting {
		return nil, fault.Errorf(fault.RateLimited, "This API key waits for too many series and tables; ask for more when some are answered.")
	}
	turn.users++
	return turn, nil
}

func (r *readers) leave(holder string, turn *readTurn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if turn.users--; turn.users == 0 {
		delete(r.turns, holder)
	}
}
