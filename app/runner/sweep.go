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

// cleanUpHourly cleans up immediately and then every hour until ctx ends.
func cleanUpHourly(ctx context.Context, log zerolog.Logger, what string, cleanUp func(context.Context) error) {
	for ctx.Err() == nil {
		if err := cleanUp(ctx); err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msg(what + ": cleanup failed; retrying in 1h")
		}
		sleep(ctx, cleanUpEvery)
	}
}

// claimedAttempts returns the current attempt number of every claimed job.
func claimedAttempts(ctx context.Context, jobs Jobs) (map[app.JobID]int, error) {
	claims, err := jobs.Claims(ctx)
	attempts := make(map[app.JobID]int, len(claims))
	for _, c := range claims {
		attempts[c.Job] = c.Attempt
	}
	return attempts, err
}

// cleanUpRemote removes the attempt directories, in a folder shared with a cluster, that
// no claimed job needs, such as those left by a crash. It lists the directories before it
// reads the claims, so that directories of later claims are not among them.
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
		os.Remove(filepath.Join(dir, string(job))) // fails while an attempt remains
	}
	return err
}

// cleanUpAllWorkers cleans up after the workers of every executor.
func (r *Runner) cleanUpAllWorkers(ctx context.Context) (err error) {
	for _, e := range r.executors {
		if workers, ok := e.Executor.(app.Workers); ok {
			err = errors.Join(err, r.cleanUpWorkers(ctx, r.workersDir(e), workers))
		}
	}
	return err
}

// cleanUpWorkers removes the directories of dead workers that a crash left. Nothing in them
// is needed once the process has exited. Those of claimed jobs stay: such workers are
// resumed, possibly a moment later. The directories are listed first, so that those of
// later claims are not among them.
func (r *Runner) cleanUpWorkers(ctx context.Context, parent string, workers app.Workers) error {
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
		needed[j.Private.Worker] = true
	}
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), "-")
		if needed[id] || r.workerCounts.Has(id) || ctx.Err() != nil {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if gone, unknown := workers.ShutdownWorker(ctx, dir); gone && unknown == nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// cleanUpFolders removes copies of algorithm folders that no claimed job needs.
func cleanUpFolders(ctx context.Context, jobs Jobs, folders *folder.Store) error {
	needed := map[string]bool{}
	active, err := jobs.Active(ctx)
	if err != nil {
		return err
	}
	for _, j := range active {
		needed[j.Private.Folder] = true
	}
	_, err = folders.CollectGarbage(func(digest string) (bool, error) { return needed[digest], ctx.Err() })
	return err
}

// attemptsIn lists the readable attempt directories by job. Entries with other names are
// not ours.
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
