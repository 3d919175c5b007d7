package cli

import (
	"context"
	"fmt"
	"syscall"

	"molrun/app"
	"molrun/app/config"
	"molrun/app/executor/local"
	"molrun/web"
)

// isolate finds out how jobs can be kept from the rest of the machine, before
// the first is started, and says so.
func (s *service) isolate(ctx context.Context) error {
	options, err := isolationOptions(s.config, s.program)
	if err != nil {
		return err
	}
	isolation, err := local.Isolate(ctx, options)
	if err != nil {
		return err
	}
	s.executor.Use(isolation)
	s.isolation = web.Isolation{Kind: isolation.Kind(), Sentence: isolation.Sentence()}
	if isolation.Bubblewrap == "" && s.config.Runner.Sandbox != local.SandboxOff {
		s.log.Warn().Str("isolation", isolation.Kind()).Msg(isolation.Sentence())
	} else {
		s.log.Info().Str("isolation", isolation.Kind()).Msg(isolation.Sentence())
	}
	if err := s.executor.Sweep(); err != nil {
		s.log.Warn().Err(err).Msg("not all cgroups of ended jobs could be removed")
	}
	return nil
}

// isolationOptions are what the configuration says of isolation.
func isolationOptions(c config.Config, program string) (local.IsolationOptions, error) {
	o := local.IsolationOptions{
		Program:   program,
		Sandbox:   c.Runner.Sandbox,
		Cgroup:    c.Runner.Cgroup,
		Processes: c.Runner.Processes,
		FileBytes: int64(c.Runner.FileSize),
	}
	if o.FileBytes > 0 {
		return o, nil
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(c.Data, &disk); err != nil {
		return o, fmt.Errorf("find out how large the disk of %s is: %w", c.Data, err)
	}
	o.FileBytes = int64(disk.Blocks) * disk.Bsize
	return o, nil
}

// sandboxOf gives what the algorithm that a job was validated against may reach.
func (s *service) sandboxOf(ctx context.Context, id app.JobID) (app.Sandbox, error) {
	var job *app.Job
	err := s.store.View(ctx, func(tx app.Tx) (err error) {
		job, err = tx.Job(id)
		return err
	})
	if err != nil {
		return app.Sandbox{}, err
	}
	algorithm, err := s.app.Runs.AlgorithmOf(ctx, job)
	if err != nil {
		return app.Sandbox{}, err
	}
	return algorithm.Sandbox, nil
}
