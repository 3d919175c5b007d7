package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"molrun/app/base/fault"
)

// Log is a part of an attempt's log.
type Log struct {
	io.Reader
	io.Closer
	Size   int64 // current size of the whole log
	Length int64 // of this part
}

// LogRequest selects a part of a log. Attempt 0 is the latest, Limit < 0 reads
// to the end.
type LogRequest struct {
	Name          string
	Attempt       int
	Offset, Limit int64
}

// Log opens the output of a job's program, even while it runs. If a log exceeds its
// limit, its middle is cut out and replaced by a line that says so.
func (s *Jobs) Log(ctx context.Context, by Caller, r LogRequest) (*Log, error) {
	var j *Job
	err := s.store.View(ctx, func(tx Tx) (err error) {
		j, err = jobNamed(tx, by, r.Name)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case j.IsBatch():
		return nil, fault.Errorf(fault.NotFound, "batch %q has no log of its own; request the log of one of its jobs", r.Name)
	case r.Attempt > j.Attempts:
		return nil, fault.Errorf(fault.NotFound, "job %q has had %d attempts; omit attempt for the log of the latest", r.Name, j.Attempts)
	case r.Attempt == 0:
		r.Attempt = j.Attempts
	}
	f, err := os.Open(filepath.Join(s.blobs.JobDir(j.ID), strconv.Itoa(r.Attempt), "log"))
	if errors.Is(err, fs.ErrNotExist) {
		return &Log{Reader: strings.NewReader(""), Closer: io.NopCloser(nil)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open log: %w", err)
	}
	log := &Log{Closer: f, Size: info.Size()}
	log.Length = max(0, log.Size-r.Offset)
	if r.Limit >= 0 {
		log.Length = min(log.Length, r.Limit)
	}
	log.Reader = io.NewSectionReader(f, r.Offset, log.Length)
	return log, nil
}
