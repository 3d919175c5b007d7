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

// kept remembers the work directories of attempts that were not completed, and
// removes them when their time is over. A note is a file <job>.<attempt> whose
// content is the time, so a sweep looks at those jobs alone, however many there
// are.
//
// The note is written before the end of the attempt is recorded, and nothing is
// removed before that: until then the directory is all that tells how the
// attempt ended. What a crash in between leaves, a sweep finds by the note.
type kept struct {
	dir  string // "": no notes, so that nothing is kept
	keep time.Duration
	now  func() time.Time
	jobs Jobs
	dirs Dirs
	log  zerolog.Logger
}

// note says from when on an attempt's directory is kept.
func (k *kept) note(id app.JobID, attempt int) error {
	if k.dir == "" {
		return nil
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	return k.stamp(k.notePath(id, attempt))
}

func (k *kept) notePath(id app.JobID, attempt int) string {
	return filepath.Join(k.dir, string(id)+"."+strconv.Itoa(attempt))
}

func (k *kept) stamp(path string) error {
	return os.WriteFile(path, []byte(k.now().UTC().Format(time.RFC3339)), 0o600)
}

// leave removes what need not be kept of an attempt whose end is recorded: the
// work directories of those before, and its own where none are kept, unless
// the job runs again and may want to read it.
func (k *kept) leave(id app.JobID, attempt int, again bool) error {
	if k.keep > 0 || again {
		return k.removeBefore(id, attempt)
	}
	return k.remove(id, attempt)
}

// remove removes the work directories of an attempt and of those before, then
// the note.
func (k *kept) remove(id app.JobID, attempt int) error {
	err := errors.Join(k.removeBefore(id, attempt), removeWork(attemptDir(k.dirs, id, attempt)))
	if err != nil || k.dir == "" {
		return err
	}
	if err := os.Remove(k.notePath(id, attempt)); !notExist(err) {
		return err
	}
	return nil
}

func (k *kept) removeBefore(id app.JobID, attempt int) (err error) {
	for n := 1; n < attempt; n++ {
		err = errors.Join(err, removeWork(attemptDir(k.dirs, id, n)))
	}
	return err
}

// run sweeps every hour until ctx ends.
func (k *kept) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.sweep(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn().Err(err).Msg("work directories of failed jobs can't be removed; will try again")
		}
		sleep(ctx, sweepEvery)
	}
}

// sweep removes the work directories whose time is over. Those of claimed jobs
// stay: the end of their attempt may not be recorded yet.
func (k *kept) sweep(ctx context.Context) error {
	notes, err := os.ReadDir(k.dir)
	if notExist(err) || err == nil && len(notes) == 0 {
		return nil
	}
	claimed, activeErr := k.claimed(ctx)
	if activeErr != nil {
		return errors.Join(err, activeErr)
	}
	removed := 0
	for _, note := range notes {
		if ctx.Err() != nil || removed == sweepAtOnce {
			break
		}
		id, attempt, ok := readNote(note.Name())
		if !ok || claimed[id] || !k.over(filepath.Join(k.dir, note.Name())) {
			continue
		}
		removed++
		err = errors.Join(err, k.remove(id, attempt))
	}
	return err
}

// claimed gives the jobs that a runner has in hand, or should have.
func (k *kept) claimed(ctx context.Context) (map[app.JobID]bool, error) {
	claims, err := k.jobs.Claims(ctx)
	claimed := make(map[app.JobID]bool, len(claims))
	for _, c := range claims {
		claimed[c.Job] = true
	}
	return claimed, err
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
