package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/runner/result"
	"molrun/app/sortid"
)

// sweepAtOnce bounds the work directories that one sweep removes.
const sweepAtOnce = 1000

// retained are the work directories of attempts that were not completed. They
// are removed some time later. A note, which is a file <job>.<attempt> whose
// content is a time, says since when one is retained. So a sweep looks at those
// jobs only, however many there are.
//
// The note is written before the end of the attempt is recorded, and nothing is
// removed before that: until then the directory is the only thing that tells how
// the attempt ended. After a crash in between, a sweep finds the directory by its note.
type retained struct {
	dir  string // of the notes; "" if nothing is retained
	keep time.Duration
	now  func() time.Time
	jobs Jobs
	dirs Dirs
}

// note writes that an attempt's work directory is retained from now on.
func (r *retained) note(id app.JobID, attempt int) error {
	if r.dir == "" {
		return nil
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	return r.stamp(r.notePath(id, attempt))
}

func (r *retained) notePath(id app.JobID, attempt int) string {
	return filepath.Join(r.dir, string(id)+"."+strconv.Itoa(attempt))
}

func (r *retained) stamp(path string) error {
	return os.WriteFile(path, []byte(r.now().UTC().Format(time.RFC3339)), 0o600)
}

// clear removes what is not retained of an attempt whose end is recorded: the
// work directories of those before it, and its own if none are retained. Its own
// stays in any case if the job runs again, because the next attempt may read it.
func (r *retained) clear(id app.JobID, attempt int, again bool) error {
	if r.keep > 0 || again {
		return r.removeBefore(id, attempt)
	}
	return r.remove(id, attempt)
}

func (r *retained) removeBefore(id app.JobID, attempt int) (err error) {
	for n := 1; n < attempt; n++ {
		err = errors.Join(err, result.RemoveWork(r.attemptDir(id, n)))
	}
	return err
}

func (r *retained) attemptDir(id app.JobID, attempt int) string {
	return filepath.Join(r.dirs.JobDir(id), strconv.Itoa(attempt))
}

// remove removes the work directories of an attempt and of those before it,
// then the note.
func (r *retained) remove(id app.JobID, attempt int) error {
	err := errors.Join(r.removeBefore(id, attempt), result.RemoveWork(r.attemptDir(id, attempt)))
	if err != nil || r.dir == "" {
		return err
	}
	if err := os.Remove(r.notePath(id, attempt)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sweep removes the work directories whose time is over. Those of claimed jobs
// stay: the end of their attempt may not be recorded yet.
func (r *retained) sweep(ctx context.Context) error {
	notes, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(notes) == 0 {
		return nil
	}
	claimed, unread := claimedAttempts(ctx, r.jobs)
	if unread != nil {
		return errors.Join(err, unread)
	}
	removed := 0
	for _, note := range notes {
		if ctx.Err() != nil || removed == sweepAtOnce {
			break
		}
		id, attempt, ok := parseNote(note.Name())
		if !ok || claimed[id] != 0 || !r.over(filepath.Join(r.dir, note.Name())) {
			continue
		}
		removed++
		err = errors.Join(err, r.remove(id, attempt))
	}
	return err
}

// parseNote returns the attempt that the name of a note stands for.
func parseNote(name string) (app.JobID, int, bool) {
	id, number, _ := strings.Cut(name, ".")
	if _, err := sortid.Parse(id); err != nil {
		return "", 0, false
	}
	attempt, err := strconv.Atoi(number)
	return app.JobID(id), attempt, err == nil && attempt > 0
}

// over reports whether the time of a note is over. If a crash has left a note
// without a time, that begins now.
func (r *retained) over(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	since, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		r.stamp(path) // if this fails, the next sweep tries again
		return false
	}
	return r.now().Sub(since) >= r.keep
}
