package local

import (
	"errors"
	"os"
	ossignal "os/signal"
	"sync"
	"syscall"
)

// reaper reaps the started processes, so that they do not remain zombies. Their exit
// status does not matter, because their directories record it. It waits for these
// processes only, because os/exec waits for its own.
type reaper struct {
	ended chan os.Signal
	quit  chan struct{}
	done  chan struct{}

	mu       sync.Mutex
	children map[int]struct{}
}

func newReaper() *reaper {
	r := &reaper{
		ended:    make(chan os.Signal, 1), // one pending signal is enough
		quit:     make(chan struct{}),
		done:     make(chan struct{}),
		children: map[int]struct{}{},
	}
	ossignal.Notify(r.ended, syscall.SIGCHLD)
	go r.run()
	return r
}

func (r *reaper) run() {
	defer close(r.done)
	for {
		select {
		case <-r.ended:
			r.reap()
		case <-r.quit:
			return
		}
	}
}

// add takes over a child, which may have exited already.
func (r *reaper) add(pid int) {
	r.mu.Lock()
	r.children[pid] = struct{}{}
	r.mu.Unlock()
	r.reap()
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid := range r.children {
		if gone(pid) {
			delete(r.children, pid)
		}
	}
}

func gone(pid int) bool {
	for {
		got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) {
			return got == pid || err != nil
		}
	}
}

// stop stops reaping. The children continue to run.
func (r *reaper) stop() {
	ossignal.Stop(r.ended)
	close(r.quit)
	<-r.done
}
