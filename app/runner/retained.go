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
	"molrun/app/base/sortid"
	"molrun/app/runner/result"
)

// cleanUpAtOnce limits the number of work directories that one cleanup removes.
const cleanUpAtOnce = 1000

// retained manages the work directories of attempts that did not complete. They are
// removed some time later, or when the disk runs short of space (freeDiskSpace). A note,
// a file named <job>.<attempt>, records since when a directory is retained, and whether
// the attempt failed for lack of space. So a cleanup reads only these jobs, however many
// others there are.
//
// The note is written before the end of the attempt is recorded, and nothing is removed
// before that: until then the directory is the only record of how the attempt ended.
// After a crash in between, a cleanup finds the directory by its note.
type retained struct {
	dir  string // directory of the notes; "" if nothing is retained
	keep time.Duration
	now  func() time.Time
	jobs Jobs
	dirs Dirs
}

// recordRetained writes the note that an attempt's work directory is retained from now
// on.
func (r *retained) recordRetained(id app.JobID, attempt int, forSpace bool) error {
	if r.dir == "" {
		return nil
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	return r.stamp(r.notePath(id, attempt), forSpace)
}

func (r *retained) notePath(id app.JobID, attempt int) string {
	return filepath.Join(r.dir, string(id)+"."+strconv.Itoa(attempt))
}

// stamp writes a note: the current time, and a second line if the attempt ran out of disk
// space.
func (r *retained) stamp(path string, forSpace bool) error {
	text := r.now().UTC().Format(time.RFC3339)
	if forSpace {
		text += "\n" + forSpaceLine
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

const forSpaceLine = "failed for lack of space"

// clear removes the work directories that need not be retained after an attempt's end is
// recorded: those of earlier attempts, and the attempt's own unless it has a note. Its
// own is always kept if the job runs again, because the next attempt may read it.
func (r *retained) clear(id app.JobID, attempt int, noted, again bool) error {
	if noted && r.keep > 0 || again {
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

// remove removes the work directories of an attempt and of earlier ones, then the note.
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

// cleanUp removes the work directories whose retention has expired. Those of claimed jobs
// stay: the end of their attempt may not be recorded yet.
func (r *retained) cleanUp(ctx context.Context) error {
	notes, err := r.notes(ctx)
	removed := 0
	for _, n := range notes {
		if ctx.Err() != nil || removed == cleanUpAtOnce {
			break
		}
		if !r.over(n) {
			continue
		}
		removed++
		err = errors.Join(err, r.remove(n.job, n.attempt))
	}
	return err
}

// notes returns the readable notes of jobs that are not claimed.
func (r *retained) notes(ctx context.Context) (notes []note, err error) {
	files, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(files) == 0 {
		return nil, nil
	}
	claimed, unread := claimedAttempts(ctx, r.jobs)
	if unread != nil {
		return nil, errors.Join(err, unread)
	}
	for _, file := range files {
		id, attempt, ok := parseNote(file.Name())
		if !ok || claimed[id] != 0 {
			continue
		}
		if n, ok := readNote(filepath.Join(r.dir, file.Name())); ok {
			n.job, n.attempt = id, attempt
			notes = append(notes, n)
		}
	}
	return notes, err
}

// readNote reads the content of a note. It returns false if it can't be read.
func readNote(path string) (n note, ok bool) {
	text, err := os.ReadFile(path)
	since, rest, _ := strings.Cut(string(text), "\n")
	n.forSpace = rest == forSpaceLine
	n.since, _ = time.Parse(time.RFC3339, since) // zero if no time was written
	return n, err == nil
}

// parseNote returns the attempt that a note's name refers to.
func parseNote(name string) (app.JobID, int, bool) {
	id, number, _ := strings.Cut(name, ".")
	if _, err := sortid.Parse(id); err != nil {
		return "", 0, false
	}
	attempt, err := strconv.Atoi(number)
	return app.JobID(id), attempt, err == nil && attempt > 0
}

// over reports whether the retention of a note has expired. If a crash left a note
// without a time, its retention starts now.
func (r *retained) over(n note) bool {
	if n.since.IsZero() {
		r.stamp(r.notePath(n.job, n.attempt), n.forSpace) // on error, the next cleanup tries again
		return false
	}
	return r.now().Sub(n.since) >= r.keep
}
