package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"

	"molrun/app/fault"
)

// commitError sorts the errors of a commit. A full disk refuses cleanly:
// nothing was written and the next commit may succeed. After any other error
// it is unknown what is on the disk, and a sync must not be tried again, since
// the system may have dropped what it could not write.
func (s *Store) commitError(err error) error {
	if isFull(err) {
		return &fault.Error{
			Code:    fault.StorageFull,
			Message: "the server's disk is full; try again once there is space",
			Err:     fmt.Errorf("commit: %w", err),
		}
	}
	return s.fail(fmt.Errorf("commit: %w", err))
}

// isFull reports whether the commit found no space before it wrote anything
// that counts. The same numbers from a sync mean lost writes.
func isFull(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	// bbolt flattens the cause of this one into text.
	if strings.HasPrefix(err.Error(), "file resize error") {
		return true
	}
	write, ok := errors.AsType[*fs.PathError](err)
	return ok && write.Op == "write" &&
		(errors.Is(write.Err, syscall.ENOSPC) || errors.Is(write.Err, syscall.EDQUOT))
}

// panicked is a panic of a closure on its way from the writer to its caller.
type panicked struct {
	value any
	stack []byte
}

func newPanicked(v any) *panicked { return &panicked{v, debug.Stack()} }

func (p *panicked) Error() string {
	return fmt.Sprintf("%v\n\nin a closure of Update:\n%s", p.value, p.stack)
}

// Unwrap gives what the closure panicked with, where that is an error.
func (p *panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// isDamage reports, in a deferred function, whether a panic means that the
// database is not what it has to be: bbolt panics at pages that make no sense,
// and the system at parts of the file that the disk does not give.
func isDamage(v any) bool {
	_, fault := v.(interface{ Addr() uintptr })
	return fault || inBolt()
}

// inBolt reports, in a deferred function, whether the panic arose in bbolt,
// which panics where a page is not what it has to be.
func inBolt() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, "go.etcd.io/bbolt.") {
			return true
		}
		if !more {
			return false
		}
	}
}
