package runner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
)

const (
	// freeSpaceEvery is how often freeDiskSpace checks the disk.
	freeSpaceEvery = 5 * time.Second
	// freeSpacePause is how long it can take until the removal of a work directory shows
	// in the free space.
	freeSpacePause = time.Second
)

// freeDiskSpace removes retained work directories, one at a time, while the disk is short
// of space, until ctx ends: they must not keep jobs and uploads waiting.
func (r *retained) freeDiskSpace(ctx context.Context, log zerolog.Logger, shortage func() string) {
	for pause := freeSpaceEvery; ; {
		sleep(ctx, pause)
		if ctx.Err() != nil {
			return
		}
		pause = freeSpaceEvery
		if why := shortage(); why != "" && r.removeFirst(ctx, log, why) {
			pause = freeSpacePause
		}
	}
}

// removeFirst removes the most dispensable work directory and reports whether there was
// one.
func (r *retained) removeFirst(ctx context.Context, log zerolog.Logger, why string) bool {
	notes, err := r.notes(ctx)
	if err == nil && len(notes) == 0 {
		return false
	}
	var first note
	if err == nil {
		first = slices.MinFunc(notes, note.compare)
		err = r.remove(first.job, first.attempt)
	}
	if err != nil {
		if ctx.Err() == nil {
			log.Warn().Err(err).Msg("could not remove a failed job's work directory to free space; retrying")
		}
		return false
	}
	log.Warn().Str("job", string(first.job)).Int("attempt", first.attempt).Str("reason", why).
		Msg("removed the work directory of a failed job early to free disk space")
	return true
}

// note records that the work directory of an attempt is retained.
type note struct {
	job      app.JobID
	attempt  int
	since    time.Time // zero if a crash truncated the note
	forSpace bool      // the attempt failed for lack of space
}

// compare sorts the most dispensable note first: attempts that failed for lack of space,
// since the others may still be useful to someone; then the oldest.
func (n note) compare(other note) int {
	switch {
	case n.forSpace && !other.forSpace:
		return -1
	case !n.forSpace && other.forSpace:
		return 1
	}
	return n.since.Compare(other.since)
}

// spaceErrors are the messages programs print when the disk is full.
var spaceErrors = []string{"No space left on device", "Disk quota exceeded"}

// lacksSpace reports whether an attempt that is ending is known to have failed for lack
// of disk space: the disk is short of it, or the program's output says so.
func (a *attempt) lacksSpace(e app.Ending) bool {
	if a.options.DiskShortage() != "" || e.Outcome != nil && e.Outcome.Cause == app.CauseDisk {
		return true
	}
	return e.Failure != nil && slices.ContainsFunc(spaceErrors, func(text string) bool { return strings.Contains(e.Failure.LogTail, text) })
}
