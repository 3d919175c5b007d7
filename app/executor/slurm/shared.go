package slurm

import (
	"os"
	"path/filepath"

	"molrun/app/base/fault"
)

// The parts of the shared directory.
const (
	attemptsDir    = "attempts"
	submissionsDir = "submissions"
	binDir         = "bin"
)

// makeDirs makes the parts of the shared directory, once for each Executor. If
// they vanish later, a file system is not mounted, and making them again would
// hide that.
func makeDirs(shared string) error {
	for _, name := range []string{attemptsDir, submissionsDir, binDir} {
		if err := os.Mkdir(filepath.Join(shared, name), 0o700); err != nil && !os.IsExist(err) {
			return fault.Errorf(fault.Unavailable, "The folder that is shared with the cluster can't be used: %v", err)
		}
	}
	return nil
}
