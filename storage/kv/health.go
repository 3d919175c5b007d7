package kv

import (
	"errors"
	"fmt"
	"sync/atomic"

	berrors "go.etcd.io/bbolt/errors"

	"molrun/app/base/fault"
	"molrun/storage/kv/boltfile"
)

// health records whether the database has failed. After a failure the content of the disk
// is unknown, or the file is not at its path, so every call returns an error.
type health struct {
	fatal  func(error)
	broken atomic.Pointer[fault.Error]
}

// err returns the error for all calls, or nil while the database is healthy.
func (h *health) err() error {
	if broken := h.broken.Load(); broken != nil {
		return broken
	}
	return nil
}

// fail marks the database as failed and returns the error for callers.
func (h *health) fail(cause error) error {
	broken := &fault.Error{
		Code:    fault.Internal,
		Message: "the database failed; the service must be restarted",
		Err:     cause,
	}
	if errors.Is(cause, boltfile.ErrGone) {
		broken.Code, broken.Message = fault.Unavailable, "the service has lost its data directory and is shutting down; contact an administrator"
	}
	if h.broken.CompareAndSwap(nil, broken) && h.fatal != nil {
		h.fatal(cause)
	}
	return h.broken.Load()
}

// beginError distinguishes a closed database from a failed one.
func (h *health) beginError(err error) error {
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return errClosed()
	}
	return h.fail(fmt.Errorf("begin a transaction: %w", err))
}

func errClosed() error {
	return fault.Errorf(fault.Unavailable, "the service is stopping; try again in a moment")
}

// commitError classifies the errors of a commit. On a full disk nothing was written, and
// the next commit can succeed. After any other error the content of the disk is unknown.
// Another sync would prove nothing: the kernel might have dropped the pages that it could
// not write.
func (h *health) commitError(err error) error {
	if boltfile.IsFull(err) {
		return &fault.Error{
			Code:    fault.StorageFull,
			Message: "the server's disk is full; try again once there is space",
			Err:     fmt.Errorf("commit: %w", err),
		}
	}
	return h.fail(fmt.Errorf("commit: %w", err))
}

func damagedError(v any) error { return fmt.Errorf("the database is damaged: %v", v) }
