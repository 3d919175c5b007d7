package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
)

const (
	sweepEvery  = time.Hour
	sweepAtOnce = 1000 // work directories removed by one sweep
)

// kept remembers whose work directories stay after a failure, and removes them
// when their time is over. A note is a file <job>.<attempt> whose content is
// the time, so a sweep looks at the failed jobs alone, however many jobs there
// are.
type kept struct {
	dir  string
	keep time.Duration
	now  func() time.Time
	dirs Dirs
	log  zerolog.Logger
}

// leave sees to the work directories of an attempt that was not completed: its
// own stays for a while, those of the attempts before go. Where none are kept
// its own goes at once, unless the job runs again and may want to read it.
func (k *kept) leave(id app.JobID, attempt int, again bool) error {
	var err error
	for n := 1; n < attempt; n++ {
		err = errors.Join(err, removeWork(attemptDir(k.dirs, id, n)))
	}
	switch {
	case k.keep > 0:
		return errors.Join(err, k.note(id, attempt))
	case again:
		return err
	}
	return errors.Join(err, removeWork(attemptDir(k.dirs, id, attempt)))
}

// note says from when on an attempt's directory is kept.
func (k *kept) note(id app.JobID, attempt int) error {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	return k.stamp(filepath.Join(k.dir, string(id)+"."+strconv.Itoa(attempt)))
}

func (k *kept) stamp(path string) error {
	return os.WriteFile(path, []byte(k.now().UTC().Format(time.RFC3339)), 0o600)
}

// run sweeps every hour until ctx ends.
func (k *kept) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.sweep(ctx); err != nil {
			k.log.Warn().Err(err).Msg("work directories of failed jobs can't be removed; will try again")
		}
		sleep(ctx, sweepEvery)
	}
}

// sweep removes the work directories whose time is over.
func (k *kept) sweep(ctx context.Context) error {
	notes, err := os.ReadDir(k.dir)
	if notExist(err) {
		return nil
	}
	removed := 0
	for _, note := range notes {
		if ctx.Err() != nil || removed == sweepAtOnce {
			break
		}
		path := filepath.Join(k.dir, note.Name())
		id, attempt, ok := readNote(note.Name())
		if !ok || !k.over(path) {
			continue
		}
		removed++
		err = errors.Join(err, removeWork(attemptDir(k.dirs, id, attempt)), os.Remove(path))
	}
	return err
}

// over reports whether the time of a note has come. What says no time, as
// after a crash, counts from now on.
func (k *kept) over(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	since, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		k.stamp(path) // tried again by the next sweep if it fails
		return false
	}
	return k.now().Sub(since) >= k.keep
}

// readNote gives the attempt that a note's name names.
func readNote(name string) (app.JobID, int, bool) {
	id, number, _ := strings.Cut(name, ".")
	if _, err := app.ParseID(id); err != nil {
		return "", 0, false
	}
	attempt, err := strconv.Atoi(number)
	return app.JobID(id), attempt, err == nil && attempt > 0
}
