package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"molrun/app"
	"molrun/app/config"
	"molrun/app/executor/slurm"
	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/routing"
)

// openCluster makes the executor of the cluster, where one is configured.
func (s *service) openCluster() (err error) {
	if !s.config.Slurm.On() {
		return nil
	}
	switch err := sharedFolder(s.config.Slurm.SharedDir, s.config.Data); {
	case errors.Is(err, fault.Unavailable): // it may not be mounted yet
		s.log.Warn().Str("executor", placement.Slurm).Msg("the folder shared with the cluster can't be used, so its jobs wait: " + message(err))
	case err != nil:
		return err
	}
	s.slurm, err = slurm.New(slurmOptions(s.config, s.program, s.sandboxOf, s.tell))
	return err
}

// routing says where jobs run.
func (s *service) routing(machines map[string]placement.Machine) routing.Table {
	table := s.config.Routing()
	table.Machines = machines
	table.Largest = func(p placement.Placement) (placement.Node, bool) {
		if s.slurm == nil {
			return placement.Node{}, false
		}
		return s.slurm.Largest(p)
	}
	return table
}

// slurmOptions are what the configuration says of the cluster. Nothing else of
// it, and no secret, reaches the executor.
func slurmOptions(c config.Config, program string, sandboxOf func(context.Context, app.JobID) (app.Sandbox, error), tell func(string, ...any)) slurm.Options {
	path := c.Slurm.Path
	if path == "" {
		path = os.Getenv("PATH")
	}
	conf := c.Slurm.Conf
	if conf == "" {
		conf = os.Getenv("SLURM_CONF")
	}
	return slurm.Options{
		SharedDir: filepath.Clean(c.Slurm.SharedDir),
		Program:   program,
		Prefix:    c.Slurm.Prefix,
		MaxTasks:  c.Slurm.MaxJobs,
		HoldGrace: time.Duration(c.Slurm.HoldGrace),
		Grace:     time.Duration(c.Runner.Grace),
		Poll:      time.Duration(c.Slurm.Poll),
		LostAfter: time.Duration(c.Slurm.LostAfter),
		Path:      path,
		SlurmConf: conf,
		NodePath:  c.Slurm.NodePath,
		Sandbox:   c.Runner.Sandbox,
		Processes: c.Runner.Processes,
		FileBytes: int64(c.Runner.FileSize),
		SandboxOf: sandboxOf,
		Now:       time.Now,
		Log:       tell,
	}
}

// tell logs what the cluster's executor has to say.
func (s *service) tell(message string, fields ...any) {
	s.log.Info().Str("executor", placement.Slurm).Fields(fields).Msg(message)
}

// executors are all that jobs can run on.
func (s *service) executors() []app.Executor {
	all := []app.Executor{s.executor}
	if s.slurm != nil {
		all = append(all, s.slurm)
	}
	return all
}

// slurmAnswers tells how the cluster's controller is, as far as that is
// remembered. While it is away jobs are still taken, and wait.
func (s *service) slurmAnswers() string {
	since, err := s.slurm.Answers()
	switch {
	case since.IsZero():
		return "not asked yet"
	case err != nil:
		return "no answer since " + since.UTC().Format(time.RFC3339)
	}
	return "ok"
}
