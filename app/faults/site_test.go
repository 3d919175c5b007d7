package faults

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/executor/slurm/cluster"
)

// site is a cluster and a service that runs all its jobs there.
type site struct {
	*server
	cluster  *cluster.Cluster
	shared   string // folder that service and nodes share
	commands string // folder of what stands before Slurm's commands
}

// newSite lays out a service beside a running cluster; it does not run yet.
func newSite(t *testing.T, c *cluster.Cluster, config string) *site {
	t.Helper()
	s := &site{cluster: c, shared: t.TempDir(), commands: t.TempDir()}
	must(t, os.Chmod(s.shared, 0o700))
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
	must(t, os.WriteFile(s.path("algorithms", "shift.toml"), fmt.Appendf(nil, shiftFile, s.path("diary")), 0o600))
	for _, name := range []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo"} {
		s.stand(name)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("warnings of the last life:\n%s", s.warnings())
		}
	})
	return s
}

// warnings gives what this life has warned of.
func (s *site) warnings() string {
	var all strings.Builder
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`) {
			all.WriteString(line)
		}
	}
	return all.String()
}

// standIn stands before one of Slurm's commands. It notes when it was called,
// and does once what an order says, before the command or after it.
const standIn = `#!/bin/bash
PATH=/usr/sbin:/usr/bin:/sbin:/bin
begin=$EPOCHREALTIME
order() {
	mv "%[1]s/$1" "%[1]s/$1.$$" 2>/dev/null || return 0
	. "%[1]s/$1.$$"
	mv "%[1]s/$1.$$" "%[1]s/$1.done"
}
limit=
[ %[2]s != sbatch ] || order before
$limit %[3]s "$@" >"%[1]s/said.$$"
code=$?
[ %[2]s != sbatch ] || order after
echo "%[2]s $begin $EPOCHREALTIME $code" >>"%[1]s/calls"
cat "%[1]s/said.$$"
rm -f "%[1]s/said.$$"
exit $code
`

func (s *site) stand(name string) {
	s.t.Helper()
	real, err := exec.LookPath(name)
	must(s.t, err)
	text := fmt.Sprintf(standIn, s.commands, name, real)
	must(s.t, os.WriteFile(filepath.Join(s.commands, name), []byte(text), 0o700))
}

// order has a line of shell run once, by the next sbatch: "before" or "after"
// Slurm's own.
func (s *site) order(when, line string) {
	s.t.Helper()
	file := filepath.Join(s.commands, when)
	_ = os.Remove(file + ".done") // there may be none
	must(s.t, os.WriteFile(file+".new", []byte(line+"\n"), 0o600))
	must(s.t, os.Rename(file+".new", file))
}

// obeyed waits until an order was carried out. It says whether it was: nobody
// may have submitted anything.
func (s *site) obeyed(when string, within time.Duration) bool {
	file := filepath.Join(s.commands, when)
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file + ".done"); err == nil {
			return true
		}
		if _, err := os.Stat(file); err == nil && time.Since(begin) > within && os.Remove(file) == nil {
			return false
		}
		if time.Since(begin) > within+patience {
			return false // it was killed in the middle of it
		}
	}
}

// call is one call of a command of Slurm.
type call struct {
	name       string
	begin, end time.Time
	code       int
}

// calls gives all that were noted so far and came to an end.
func (s *site) calls() (all []call) {
	s.t.Helper()
	f, err := os.Open(filepath.Join(s.commands, "calls"))
	if os.IsNotExist(err) {
		return nil
	}
	must(s.t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c call
		var begin, end float64
		if _, err := fmt.Sscan(lines.Text(), &c.name, &begin, &end, &c.code); err != nil {
			s.t.Fatalf("%s: %v", lines.Text(), err)
		}
		c.begin, c.end = moment(begin), moment(end)
		all = append(all, c)
	}
	return all
}

// moment reads a time that a script has noted, in seconds.
func moment(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }

// inSlurm gives the jobs of the service that Slurm has not ended, a line each.
func (s *site) inSlurm() []string {
	s.t.Helper()
	out := s.cluster.Run(s.t, "squeue", "--noheader", "--array", "-o", "%A %j %T %N")
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
}
