package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"molrun/app"
	"molrun/app/executor/local"
	"molrun/app/executor/slurm"
	"molrun/app/server/config"
	"molrun/app/task/container"
	"molrun/blobs"
)

// IsolationOptions returns the configured isolation of local jobs. Without a limit, a
// file can grow to the size of the disk. Jobs respect the disk's free-space threshold.
func IsolationOptions(c config.Config) (local.IsolationOptions, error) {
	o := local.IsolationOptions{
		Sandbox:   c.Runner.Sandbox,
		Cgroup:    c.Runner.Cgroup,
		Processes: c.Runner.Processes,
		FileBytes: int64(c.Runner.FileSize),
		Hide:      hidden(c),

		Containers: Containers(c), ModulesInit: c.Modules.Init,
	}
	disk, err := diskOf(c.Data, int64(c.Disk.Reserve))
	if err != nil {
		return o, fmt.Errorf("determine the disk size of %s: %w", c.Data, err)
	}
	o.Reserve = disk.Reserve
	if o.FileBytes == 0 {
		o.FileBytes = disk.Size
	}
	return o, nil
}

// hidden returns the paths that must be hidden from a job's programs: the data directory,
// the configuration file, the files with its secrets, and the cluster's shared directory.
func hidden(c config.Config) (paths []string) {
	for _, path := range []string{c.Data, c.File, c.TLS.Key, c.Mail.PasswordFile, c.Slurm.SharedDir} {
		if path == "" {
			continue
		}
		if abs, err := filepath.Abs(path); err == nil {
			paths = append(paths, abs)
		}
	}
	return paths
}

// diskOf returns the disk that a directory is on, or will be on once created.
func diskOf(folder string, reserve int64) (disk app.Disk, err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return disk, err
	}
	for disk, err = blobs.Space(folder, reserve); errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(folder); disk, err = blobs.Space(folder, reserve) {
		folder = filepath.Dir(folder)
	}
	return disk, err
}

// Containers returns the configured options for container images.
func Containers(c config.Config) container.Options {
	return container.Options{Runtime: c.Containers.Runtime, Pull: c.Containers.Pull, Env: c.Containers.Env}
}

// SlurmOptions returns the configured options of the cluster's executor, which gets no
// other setting and no secret.
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
		Hide:      hidden(c),

		Containers: Containers(c), ModulesInit: c.Modules.Init,

		Now: time.Now,
	}
}
