package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"
)

// Guard runs fn and returns any damage that it encounters as an error.
func Guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			if !IsDamage(v) {
				panic(v)
			}
			err = Damaged(fmt.Errorf("%v", v))
		}
	}()
	return fn()
}

// Damaged wraps an error about a file that must be restored from a backup.
func Damaged(err error) error {
	return fmt.Errorf("the file is damaged or not a database; restore a backup: %w", err)
}

// IsDamage reports whether a recovered panic means that the file is damaged: bbolt panics
// on inconsistent pages, and the runtime on unreadable parts of the memory map. It must
// be called in the deferred function.
func IsDamage(v any) bool {
	if _, unreadable := v.(interface{ Addr() uintptr }); unreadable {
		return true
	}
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
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

// IsFull reports whether a write failed for lack of space before anything was committed.
// ENOSPC from a sync does not count: it means lost writes.
func IsFull(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	// bbolt formats the cause of this error with %s, which hides it from errors.Is.
	if strings.HasPrefix(err.Error(), "file resize error") {
		return true
	}
	write, ok := errors.AsType[*fs.PathError](err)
	return ok && write.Op == "write" &&
		(errors.Is(write.Err, syscall.ENOSPC) || errors.Is(write.Err, syscall.EDQUOT))
}
