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

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm/folder"
	"molrun/app/base/sortid"
	"molrun/app/runner/result"
)

const cleanUpEvery = time.Hour

// cleanUpHourly cleans up at once and then every hour until ctx ends.
func cleanUpHourly(ctx context.Context, log zerolog.Logger, what string, cleanUp func(context.Context) error) {
	for ctx.Err() == nil {
		if err := cleanUp(ctx); err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msg(what + " can't be removed; will try again")
		}
		sleep(ctx, cleanUpEvery)
	}
}

// claimedAttempts returns the current attempts of all claimed jobs.
func claimedAttempts(ctx context.Context, jobs Jobs) (map[app.JobID]int, error) {
	claims, err := jobs.Claims(ctx)
	attempts := make(map[app.JobID]int, len(claims))
	for _, c := range claims {
		attempts[c.Job] = c.Attempt
	}
	return attempts, err
}

// cleanUpRemote removes directories in a folder shared with a cluster that no
// claimed job needs, as a crash leaves them. It lists the directories before it
// reads the claims, so those of later claims are not among them.
func cleanUpRemote(ctx context.Context, jobs Jobs, dir string) error {
	found, err := attemptsIn(dir)
	current, unread := claimedAttempts(ctx, jobs)
	if unread != nil {
		return errors.Join(err, unread)
	}
	for job, attempts := range found {
		for _, n := range attempts {
			if now := current[job]; (now == 0 || n < now) && ctx.Err() == nil {
				err = errors.Join(err, result.RemoveTree(filepath.Join(dir, string(job), strconv.Itoa(n))))
			}
		}
		os.Remove(filepath.Join(dir, string(job))) // fails while there is an attempt
	}
	return err
}

// cleanUpAllPilots cleans up after the pilots of all executors.
func (r *Runner) cleanUpAllPilots(ctx context.Context) (err error) {
	for _, e := range r.executors {
		if pilots, ok := e.Executor.(app.Pilots); ok {
			err = errors.Join(err, r.cleanUpPilots(ctx, r.pilotsDir(e), pilots))
		}
	}
	return err
}

// cleanUpPilots removes directories of dead pilots, as a crash leaves them. Nothing in them
// is needed once the process has exited. Those of claimed jobs stay: they are continued,
// perhaps a moment later. The directories are listed before, so those of later claims are not
// among them.
func (r *Runner) cleanUpPilots(ctx context.Context, parent string, pilots app.Pilots) error {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	active, unread := r.jobs.Active(ctx)
	if unread != nil {
		return errors.Join(err, unread)
	}
	needed := map[string]bool{}
	for _, j := range active {
		needed[j.Private.Pilot] = true
	}
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), "-")
		if needed[id] || r.pilotCounts.Has(id) || ctx.Err() != nil {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if gone, unknown := pilots.ShutdownPilot(ctx, dir); gone && unknown == nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// cleanUpFolders removes copies of algorithms' folders that no claimed job needs.
func cleanUpFolders(ctx context.Context, jobs Jobs, folders *folder.Store) error {
	needed := map[string]bool{}
	active, err := jobs.Active(ctx)
	if err != nil {
		return err
	}
	for _, j := range active {
		needed[j.Private.Folder] = true
	}
	_, err = folders.Sweep(func(digest string) (bool, error) { return needed[digest], ctx.Err() })
	return err
}

// attemptsIn lists the directories of attempts by job, as far as they can be
// read. Anything with another name is not ours.
func attemptsIn(dir string) (map[app.JobID][]int, error) {
	jobs, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	found := make(map[app.JobID][]int, len(jobs))
	for _, e := range jobs {
		if _, foreign := sortid.Parse(e.Name()); foreign != nil {
			continue
		}
		attempts, unread := os.ReadDir(filepath.Join(dir, e.Name()))
		err = errors.Join(err, unread)
		numbers := []int{}
		for _, a := range attempts {
			if n, foreign := strconv.Atoi(a.Name()); foreign == nil {
				numbers = append(numbers, n)
			}
		}
		found[app.JobID(e.Name())] = numbers
	}
	return found, err
}
