package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"molrun/app/algorithm"
	"molrun/app/task"
)

// Names in a work directory.
const (
	inDir        = "in"
	outDir       = task.OutDir
	settingsFile = "settings.json"
)

// layOut makes the attempt's directory from nothing, task.json last. Nothing
// is synced but that: after a crash of the machine a task that has not begun
// is laid out again.
//
// The task's lock is held meanwhile, so a task that a runner before this one
// may just have set going can't begin in the middle.
func (a *attempt) layOut(ctx context.Context) error {
	program, err := a.program(ctx)
	if err != nil {
		return err
	}
	if err := a.makeDir(); err != nil {
		return fmt.Errorf("lay out: %w", err)
	}
	lock, err := task.Lock(a.dir)
	switch {
	case errors.Is(err, task.ErrLocked):
		return errAlive
	case errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP):
		// A cluster's file system may have no locks.
	case err != nil:
		return fmt.Errorf("lay out: %w", err)
	default:
		defer lock.Close()
	}
	if task.Exists(a.dir, task.RunFile) || task.Exists(a.dir, task.OutcomeFile) || task.Exists(a.dir, task.ClaimDir) {
		return errAlive
	}
	return a.fill(ctx, program)
}

// fill makes the content of the directory.
func (a *attempt) fill(ctx context.Context, program string) error {
	alg, err := a.algorithm(ctx)
	if err != nil {
		return err
	}
	if err := a.clear(); err != nil {
		return fmt.Errorf("lay out: %w", err)
	}
	paths, err := a.makeWork(program)
	if err != nil {
		return fmt.Errorf("lay out: %w", err)
	}
	check := func() error { return a.goOn(ctx) }
	if paths.Files, err = a.copyInputs(alg, check); err != nil {
		return err
	}
	if alg.Resumable && a.number > 1 {
		if err := a.resume(check); err != nil {
			return fmt.Errorf("copy the previous attempt's output: %w", err)
		}
	}
	return a.writeTask(alg, paths)
}

// goOn says whether it is worth going on with long work for the job.
func (a *attempt) goOn(ctx context.Context) error {
	if a.stopAsked() {
		return errStopped
	}
	return ctx.Err()
}

// algorithm gives the definition that the job was validated against.
func (a *attempt) algorithm(ctx context.Context) (*algorithm.File, error) {
	var alg *algorithm.File
	err := bounded(ctx, func(ctx context.Context) (err error) {
		alg, err = a.r.jobs.AlgorithmOf(ctx, a.job)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the algorithm: %w", err)
	}
	return alg, nil
}

// clear removes what an earlier try left: a half laid out directory, and what
// an earlier attempt that was lost had begun to collect.
func (a *attempt) clear() error {
	job := filepath.Dir(a.home)
	return errors.Join(
		os.RemoveAll(filepath.Join(a.dir, task.SpecFile)),
		os.RemoveAll(a.workDir()),
		os.RemoveAll(filepath.Join(job, manifestFile)),
		os.RemoveAll(filepath.Join(job, recordFile)),
		os.RemoveAll(filepath.Join(job, resultDir)),
	)
}

func (a *attempt) workDir() string { return filepath.Join(a.dir, task.WorkDir) }

// makeWork makes the work directory with all but the inputs.
func (a *attempt) makeWork(program string) (algorithm.Paths, error) {
	work := a.workDir()
	p := algorithm.Paths{
		Work:         work,
		Out:          filepath.Join(work, outDir),
		SettingsFile: filepath.Join(work, settingsFile),
		Program:      program,
	}
	for _, dir := range []string{work, p.Out, filepath.Join(work, inDir), filepath.Join(work, task.TempDir)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return p, err
		}
	}
	return p, os.WriteFile(p.SettingsFile, a.job.Private.Normalized, 0o600)
}

// writeTask puts down what to run.
func (a *attempt) writeTask(alg *algorithm.File, p algorithm.Paths) error {
	steps, env, err := alg.Expand(a.job.Private.Normalized, a.needs, p)
	if err != nil {
		return cannotStart("The algorithm's commands could not be made from the settings: "+err.Error(), err)
	}
	return task.Write(a.dir, task.Spec{
		Token:             a.job.Private.Token,
		Job:               string(a.id),
		Attempt:           a.number,
		Steps:             steps,
		Env:               env,
		GPUs:              a.gpus,
		CPUs:              a.needs.CPUs,
		MaxRuntimeSeconds: a.job.MaxRuntime,
		MemoryBytes:       a.needs.MemoryBytes,
		LogBytes:          a.r.options.LogBytes,
		GraceSeconds:      int64((a.r.options.Grace + time.Second - 1) / time.Second),
	})
}

// resume copies what the attempt before left in its output folder, if that is
// still there. Where a link stands for that attempt nothing came home, and what
// the link shows is about to go.
func (a *attempt) resume(check func() error) error {
	from, err := openOutput(attemptDir(a.r.dirs, a.id, a.number-1))
	if from == "" || err != nil {
		return err
	}
	return copyTree(filepath.Join(a.workDir(), outDir), from, check)
}
