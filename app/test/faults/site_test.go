package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// site is a cluster and a service that runs all its jobs there.
type site struct {
	*server
	cluster  *cluster.Cluster
	shared   string // directory shared by the service and the nodes
	commands string // directory of Slurm commands
}

// newSite prepares a service that uses a running cluster, without starting the service.
func newSite(t *testing.T, c *cluster.Cluster, config string) *site {
	t.Helper()
	s := &site{cluster: c, shared: t.TempDir(), commands: t.TempDir()}
	must.OK(t, os.Chmod(s.shared, 0o700))
	programs := filepath.Join(t.TempDir(), "bin")
	linkPrograms(t, programs)
	settings := fmt.Sprintf(`[runner]
executor = "slurm"
grace = "2s"
sandbox = "off"
[slurm]
shared_dir = %q
path = %q
conf = %q
node_path = %q
`, s.shared, s.commands, c.Conf, programs)
	s.server = newServer(t, "", settings+config)
	s.addAlgorithm(resumableDiary)
	s.addAlgorithm(briefDiary)
	for _, name := range []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo"} {
		real, err := exec.LookPath(name)
		must.OK(t, err)
		if name == "sbatch" {
			must.OK(t, os.WriteFile(filepath.Join(s.commands, name), fmt.Appendf(nil, wrapper, s.commands, real), 0o700))
		} else {
			must.OK(t, os.Symlink(real, filepath.Join(s.commands, name)))
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("warnings since the last start:\n%s", s.warnings())
		}
	})
	return s
}

// warnings returns the log's warnings and errors since the last start.
func (s *site) warnings() string {
	var all strings.Builder
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`) {
			all.WriteString(line)
		}
	}
	return all.String()
}

// wrapper replaces sbatch. It runs a hook once, before or after the real command.
const wrapper = `#!/bin/bash
PATH=/usr/sbin:/usr/bin:/sbin:/bin
hook() {
	mv "%[1]s/$1" "%[1]s/$1.$$" 2>/dev/null || return 0
	. "%[1]s/$1.$$"
	mv "%[1]s/$1.$$" "%[1]s/$1.done"
}
limit=
hook before
$limit %[2]s "$@" >"%[1]s/said.$$"
code=$?
hook after
cat "%[1]s/said.$$"
rm -f "%[1]s/said.$$"
exit $code
`

// setHook makes the next sbatch run a shell command line once, either before or after the
// real command: when is "before" or "after".
func (s *site) setHook(when, line string) {
	s.t.Helper()
	file := filepath.Join(s.commands, when)
	_ = os.Remove(file + ".done") // it might not exist
	must.OK(s.t, os.WriteFile(file+".new", []byte(line+"\n"), 0o600))
	must.OK(s.t, os.Rename(file+".new", file))
}

// hookRan waits until a hook has run, and reports whether it did. It might not, if
// nothing is submitted.
func (s *site) hookRan(when string, within time.Duration) bool {
	file := filepath.Join(s.commands, when)
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file + ".done"); err == nil {
			return true
		}
		if _, err := os.Stat(file); err == nil && time.Since(begin) > within && os.Remove(file) == nil {
			return false
		}
		if time.Since(begin) > within+patience {
			return false // the hook was killed while it ran
		}
	}
}

// inSlurm returns Slurm's unfinished jobs, one line each.
func (s *site) inSlurm() []string {
	s.t.Helper()
	out := s.cluster.Run(s.t, "squeue", "--noheader", "--array", "-o", "%A %j %T %N")
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
}
