package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/fault"
	"molrun/app/executor/local"
	"molrun/app/executor/slurm"
	"molrun/app/job/status"
	"molrun/app/runner"
	"molrun/app/server/host"
	"molrun/web"
)

// isolate determines how jobs can be isolated from the rest of the machine, before the
// first one starts, and logs it.
func (s *service) isolate(ctx context.Context) error {
	options, err := host.IsolationOptions(s.config)
	if err != nil {
		return err
	}
	isolation, err := local.Isolate(ctx, options)
	if err != nil {
		return err
	}
	s.executor.SetIsolation(isolation)
	s.isolation = web.Isolation{Kind: isolation.Kind(), Sentence: isolation.Sentence()}
	s.gaps = isolation.Gaps
	if isolation.Bubblewrap == "" && s.config.Runner.Sandbox != local.SandboxOff {
		s.log.Warn().Str("isolation", isolation.Kind()).Msg(isolation.Sentence())
	} else {
		s.log.Info().Str("isolation", isolation.Kind()).Msg(isolation.Sentence())
	}
	ctx, cancel := context.WithTimeout(ctx, cleanUpTimeout)
	defer cancel()
	if err := s.executor.CleanUp(ctx, filepath.Join(s.config.Data, "jobs"), s.images); err != nil {
		s.log.Warn().Err(err).Msg("could not remove all cgroups and containers of finished jobs")
	}
	return nil
}

// cleanUpTimeout limits the cleanup after a crash, during which nothing else starts.
const cleanUpTimeout = 20 * time.Second

// images returns the container images of all algorithms.
func (s *service) images() []string {
	var images []string
	for _, typ := range s.catalogue.Types() {
		for _, a := range s.catalogue.Versions(typ) {
			if a.Sandbox.Image != "" {
				images = append(images, a.Sandbox.Image)
			}
		}
	}
	return images
}

// openCluster creates the executor of the cluster, if one is configured.
func (s *service) openCluster() (err error) {
	if !s.config.Slurm.On() {
		return nil
	}
	switch err := host.CheckSharedDir(s.config.Slurm.SharedDir, s.config.Data); {
	case errors.Is(err, fault.Unavailable): // might not be mounted yet
		s.log.Warn().Str("executor", placement.Slurm).Msg("shared folder unusable; cluster jobs wait: " + fault.Text(err))
	case err != nil:
		return err
	}
	options := host.SlurmOptions(s.config)
	options.SandboxOf, options.Log, options.Ran = s.sandboxOf, s.logSlurm, s.metrics.RanCommand
	s.slurm, err = slurm.New(options)
	return err
}

// routing returns the table that determines where jobs run.
func (s *service) routing(machines map[string]placement.Machine) routing.Table {
	table := s.config.Routing()
	table.Machines = machines
	table.Largest = func(p placement.Placement) (placement.Node, bool) {
		if s.slurm == nil {
			return placement.Node{}, false
		}
		return s.slurm.Largest(p)
	}
	table.Missing = func(p placement.Placement) string {
		if s.slurm == nil {
			return ""
		}
		return s.slurm.Missing(p)
	}
	return table
}

// logSlurm logs a message of the cluster's executor.
func (s *service) logSlurm(message string, fields ...any) {
	s.log.Info().Str("executor", placement.Slurm).Fields(fields).Msg(message)
}

// executors returns all executors that jobs can run on.
func (s *service) executors() []app.Executor {
	all := []app.Executor{s.executor}
	if s.slurm != nil {
		all = append(all, s.slurm)
	}
	return all
}

// executorStates returns all executors with functions that report their states.
func (s *service) executorStates() []status.Executor {
	all := []status.Executor{{Executor: s.executor, State: func() string { return "ok" }}}
	if s.slurm != nil {
		all = append(all, status.Executor{Executor: s.slurm, State: s.slurmState})
	}
	return all
}

// slurmState reports whether the cluster's controller last responded, and whether the
// shared folder was writable. If not, jobs are still accepted but wait.
func (s *service) slurmState() string {
	since, err := s.slurm.Answers()
	away, folder := s.slurm.Folder()
	switch {
	case folder != nil:
		return "the shared folder has been unusable since " + away.UTC().Format(time.RFC3339) + ": " + folder.Error()
	case since.IsZero():
		return "not queried yet"
	case err != nil:
		return "no response since " + since.UTC().Format(time.RFC3339)
	}
	return "ok"
}

// sandboxOf returns the sandbox of the algorithm that a job was validated against.
func (s *service) sandboxOf(ctx context.Context, id app.JobID) (app.Sandbox, error) {
	var job *app.Job
	err := s.store.View(ctx, func(tx app.Tx) (err error) {
		job, err = tx.Job(id)
		return err
	})
	if err != nil {
		return app.Sandbox{}, err
	}
	a, err := s.app.Runs.AlgorithmOf(ctx, job)
	if err != nil {
		return app.Sandbox{}, err
	}
	return a.AccessibleSandbox(), nil
}

// versionOf queries the version of an algorithm's program, in a sandbox like that of
// jobs.
func (s *service) versionOf(ctx context.Context, a *algorithm.File) (string, error) {
	probe, ok := a.VersionProbe(s.program)
	if !ok {
		return "", nil
	}
	return s.versions.Version(ctx, probe)
}

// runner creates the runner of jobs.
func (s *service) runner() *runner.Runner {
	r := s.config.Runner
	host, _ := os.Hostname() // "" if unknown
	origin := app.JobOrigin{Version: s.version, Host: host}
	return runner.New(s.app.Runs, s.files, s.executors(), runner.Options{
		Now:          time.Now,
		Log:          s.log,
		LogBytes:     int64(r.LogLimit),
		Grace:        time.Duration(r.Grace),
		ReserveAfter: time.Duration(r.ReserveAfter),
		KeepFailed:   time.Duration(r.KeepFailed),
		RetainedDir:  filepath.Join(s.config.Data, "kept"),
		WorkersDir:   filepath.Join(s.config.Data, "workers"),
		Quota:        s.config.QuotaOf,
		Blocked:      s.app.Runs.Blocked,
		DiskShortage: s.app.Runs.DiskShortage,
		Program:      s.program,
		Describe:     origin.Describe,
		VersionOf:    s.versionOf,
		Load:         s.metrics.Load,
	})
}
