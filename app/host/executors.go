package host

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"molrun/app/config"
	"molrun/app/executor/local"
	"molrun/app/executor/slurm"
)

// IsolationOptions are the settings of the configuration that isolate local
// jobs. Without a limit, a file may grow to the size of the disk.
func IsolationOptions(c config.Config) (local.IsolationOptions, error) {
	o := local.IsolationOptions{
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

// SlurmOptions are the settings of the configuration for the cluster's
// executor, which gets no other setting and no secret.
func SlurmOptions(c config.Config) slurm.Options {
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
		Now:       time.Now,
	}
}
