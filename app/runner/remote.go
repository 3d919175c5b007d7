package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/task"
	"molrun/app/unit"
)

// An attempt that runs on other machines has its directory where they see it
// (away). A link stands for it in the job's directory (home), so that its log
// can be read. When it has ended, what it left is copied to a directory that
// takes the link's place, whole or not at all; the other one goes when the
// attempt's end is recorded.

// newHome ends the name of a directory that is not whole yet.
const newHome = ".new"

// attemptDir gives where an attempt's directory lies while its task lives.
func (p *place) attemptDir(home string, j *app.Job) string {
	if p.remote == nil {
		return home
	}
	return filepath.Join(p.remote.AttemptsDir(), string(j.ID), strconv.Itoa(j.Attempts))
}

func (a *attempt) away() bool { return a.dir != a.home }

// makeDir makes the attempt's directory. Of one that is away the folder of all
// attempts is not made, which the executor does once: where it is missing, a
// file system is not mounted.
func (a *attempt) makeDir() error {
	if !a.away() {
		return os.MkdirAll(a.dir, 0o700)
	}
	for _, dir := range []string{filepath.Dir(a.dir), a.dir} {
		if err := os.Mkdir(dir, 0o700); notExist(err) {
			return fault.Errorf(fault.Unavailable, "The folder that is shared with the cluster can't be used: %v", err)
		} else if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(a.home), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(a.dir, a.home); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// program gives the path of this program where the task runs.
func (a *attempt) program(ctx context.Context) (string, error) {
	if a.place.remote == nil {
		return a.r.options.Program, nil
	}
	return a.place.remote.Program(ctx)
}

// fetch brings home what is left of an attempt that was not completed: its log,
// and its output for who wants to look, or to go on from there. That it does
// not come keeps the job's end from nobody for long.
func (a *attempt) fetch(ctx context.Context) {
	begin := time.Now()
	for b := (backoff{time.Second, time.Minute}); a.away() && ctx.Err() == nil; b.wait(ctx) {
		err := a.r.worker(ctx, func() error { return a.bringHome(ctx, nil) })
		if err == nil || ctx.Err() != nil {
			return
		}
		if !passing(err) || time.Since(begin) >= prepPatience {
			a.log.Error().Err(err).Msg("what an attempt left can't be fetched from the folder that is shared with the cluster")
			return
		}
		a.log.Warn().Err(err).Msg("what an attempt left can't be fetched now; will try again")
	}
}

// bringHome copies what the attempt left into the data directory, durably, if
// it is not there yet. Of an attempt that was done, o says what there should be:
// over a network files may be seen late.
func (a *attempt) bringHome(ctx context.Context, o *app.Outcome) error {
	if !a.away() || isDir(a.home) {
		return nil
	}
	if _, err := os.Lstat(a.dir); o == nil && (notExist(err) || !task.Exists(a.dir, task.RunFile)) {
		return nil // it never began
	} else if err != nil {
		return fault.Errorf(fault.Unavailable, "The attempt's directory can't be seen: %v", err)
	}
	to := a.home + newHome
	if err := errors.Join(removeTree(to), os.MkdirAll(to, 0o700)); err != nil {
		return err
	}
	check := func() error { return ctx.Err() }
	if err := copyFiles(to, a.dir, check); err != nil {
		return err
	}
	if err := a.bringOutput(to, o, check); err != nil {
		return err
	}
	if err := syncBelow(to); err != nil {
		return err
	}
	return takePlace(a.home, to)
}

// bringOutput copies the output folder. One that can't be kept is left behind
// where the attempt was not done.
func (a *attempt) bringOutput(to string, o *app.Outcome, check func() error) error {
	out, err := openOutput(a.dir)
	if out == "" || err != nil {
		return err
	}
	seen, err := survey(out, a.r.options.MaxFiles, check)
	var no unfit
	if errors.As(err, &no) && o == nil {
		a.log.Warn().Str("reason", string(no)).Msg("the output of an attempt that was not completed is left behind")
		return nil
	}
	if err != nil {
		return err
	}
	if o != nil && (seen.files < o.OutputFiles || seen.bytes < o.OutputBytes) {
		return fault.Errorf(fault.Unavailable, "The task left %d files with %d bytes, of which %d with %d are seen", o.OutputFiles, o.OutputBytes, seen.files, seen.bytes)
	}
	copied := filepath.Join(to, task.WorkDir, outDir)
	if err := os.MkdirAll(copied, 0o700); err != nil {
		return err
	}
	if err := copyTree(copied, out, check); err != nil || o == nil {
		return err
	}
	come, err := survey(copied, a.r.options.MaxFiles, check)
	if err == nil && come.bytes < seen.bytes {
		err = fault.Errorf(fault.Unavailable, "Of %d bytes of output only %d were read", seen.bytes, come.bytes)
	}
	return err
}

// clearAway removes the directory that is away, and the link to it where
// nothing came home.
func (a *attempt) clearAway() error {
	err := removeTree(a.dir)
	if info, lost := os.Lstat(a.home); lost == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errors.Join(err, os.Remove(a.home))
	}
	err = errors.Join(err, removeTree(a.home+newHome))
	os.Remove(filepath.Dir(a.dir)) // fails where another attempt lies there
	return err
}

// amount is what a folder holds.
type amount struct {
	files int
	bytes int64
}

// survey counts what a program left, before it is copied: what could not be
// kept must not fill the disk.
func survey(dir string, most int, check func() error) (n amount, err error) {
	entries, holes := 0, int64(0)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && errors.Is(err, fs.ErrPermission) {
			return fs.SkipDir // copyTree opens it
		}
		if err != nil {
			return err
		}
		if entries++; entries > most {
			return unfit(fmt.Sprintf("The program left more than %d files and folders; let it write fewer, or pack them.", most))
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return errors.Join(err, check())
		}
		n.files++
		n.bytes += info.Size()
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			holes += max(0, info.Size()-s.Blocks*512)
		}
		return nil
	})
	if err == nil && holes > maxHoles && n.bytes > maxHoles {
		err = unfit(fmt.Sprintf("The program left files with more than %s of holes (sparse files); let it write only what they hold.", unit.Bytes(maxHoles)))
	}
	return n, err
}

// copyFiles copies the regular files of a folder, and none of its folders.
func copyFiles(to, from string, check func() error) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	entries, err := fs.ReadDir(source.FS(), ".")
	for _, e := range entries {
		if e.Type().IsRegular() && err == nil {
			err = copyBetween(target, source, e.Name(), check)
		}
	}
	return errors.Join(err, target.Close())
}

// syncBelow makes a folder durable with all that is in it.
func syncBelow(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncDir(path) // of a file it does the same
	})
}

// takePlace puts a directory where a link to another is.
func takePlace(home, whole string) error {
	if err := os.Remove(home); err != nil && !notExist(err) {
		return err
	}
	if err := os.Rename(whole, home); err != nil {
		return err
	}
	return syncDir(filepath.Dir(home))
}

// sweepAway removes directories that no claimed job needs, as a crash leaves
// them: at first and then every hour.
func (r *Runner) sweepAway(ctx context.Context, p *place) {
	for ctx.Err() == nil {
		if err := r.sweepAwayOnce(ctx, p.remote.AttemptsDir()); err != nil && ctx.Err() == nil {
			r.options.Log.Warn().Err(err).Str("executor", p.name).Msg("attempts' directories that nobody needs can't be removed; will try again")
		}
		sleep(ctx, sweepEvery)
	}
}

// sweepAwayOnce lists the directories first: one that is there was made for a
// claim from before the claims are read.
func (r *Runner) sweepAwayOnce(ctx context.Context, dir string) error {
	found, err := attemptsIn(dir)
	claims, unread := r.jobs.Claims(ctx)
	if unread != nil {
		return errors.Join(err, unread)
	}
	current := make(map[app.JobID]int, len(claims))
	for _, c := range claims {
		current[c.Job] = c.Attempt
	}
	for job, attempts := range found {
		for _, n := range attempts {
			if now := current[job]; (now == 0 || n < now) && ctx.Err() == nil {
				err = errors.Join(err, removeTree(filepath.Join(dir, string(job), strconv.Itoa(n))))
			}
		}
		os.Remove(filepath.Join(dir, string(job))) // fails where an attempt stays
	}
	return err
}

// attemptsIn lists the directories of attempts by job, as far as they can be
// read. What has another name is not ours.
func attemptsIn(dir string) (map[app.JobID][]int, error) {
	jobs, err := os.ReadDir(dir)
	if notExist(err) {
		return nil, nil
	}
	found := make(map[app.JobID][]int, len(jobs))
	for _, e := range jobs {
		if _, foreign := app.ParseID(e.Name()); foreign != nil {
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
