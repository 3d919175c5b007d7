package task

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"molrun/app/task/protocol"
)

// reservedOutcome is disk space for outcome.json, allocated at the start: a program that
// fills the disk must not prevent its own outcome from being written.
type reservedOutcome struct {
	dir, path string
}

const (
	reservedBytes  = 4 << 10
	outcomeRetries = 10
	outcomePause   = 500 * time.Millisecond
)

func reserveOutcome(dir string) (*reservedOutcome, error) {
	f, err := os.CreateTemp(dir, "."+OutcomeFile+".*")
	if err != nil {
		return nil, fmt.Errorf("reserve space for %s: %w", OutcomeFile, err)
	}
	err = syscall.Fallocate(int(f.Fd()), 0, 0, reservedBytes)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		err = nil // this file system does not support it
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("reserve space for %s: %w", OutcomeFile, errors.Join(err, os.Remove(f.Name())))
	}
	return &reservedOutcome{dir, f.Name()}, nil
}

// write makes outcome.json appear, as the last step of the task. It retries for some
// seconds, because without the outcome all work is lost.
func (r *reservedOutcome) write(o protocol.Outcome) error {
	sync := o.Unsynced == ""
	data, err := encode(o)
	if err != nil {
		return err
	}
	for range outcomeRetries {
		if err = r.fill(data, sync); err == nil {
			err = install(r.path, r.dir, OutcomeFile, sync)
		}
		if err == nil || Exists(r.dir, OutcomeFile) {
			return nil
		}
		time.Sleep(outcomePause)
	}
	return fmt.Errorf("write %s: %w", OutcomeFile, err)
}

func (r *reservedOutcome) fill(data []byte, sync bool) error {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
