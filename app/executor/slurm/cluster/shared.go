package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Shared is one cluster for all tests of a package, started by the first that
// wants it. Where SLURM_TEST_DIR names the state directory of a cluster that
// slurm-up started, as the output of slurm-up does, that one is used and left
// running.
type Shared struct {
	Knobs Knobs

	mu      sync.Mutex
	cluster *Cluster
	err     error // of the start
}

// Start gives the cluster with all its components running, whatever the test
// before did to them. The test is skipped where there is no Slurm.
func (s *Shared) Start(t testing.TB) *Cluster {
	t.Helper()
	skipWithoutSlurm(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil: // once is enough to wait for
	case s.cluster == nil:
		s.cluster, s.err = s.open()
	default:
		s.err = s.cluster.up(nil)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Cleanup(func() { s.cluster.logIfFailed(t) })
	return s.cluster
}

func (s *Shared) open() (*Cluster, error) {
	state := os.Getenv("SLURM_TEST_DIR")
	if state == "" {
		return start(s.Knobs)
	}
	base, err := os.MkdirTemp("/tmp", "molrun-slurm-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{base: base, state: state}
	if err := c.unpack(); err != nil {
		return nil, err
	}
	return c, c.up(nil)
}

// Close stops the cluster and removes all of it. Without it the cluster goes
// when the process ends.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return nil
	}
	c := s.cluster
	s.cluster = nil
	return c.close()
}

// skipWithoutSlurm skips a test where no cluster can be started, or fails it
// where nothing may be skipped.
func skipWithoutSlurm(t testing.TB) {
	t.Helper()
	why := lacking()
	switch {
	case why == "":
	case os.Getenv("TEST_REQUIRE_ALL") != "":
		t.Fatalf("%s, and nothing may be skipped here", why)
	default:
		t.Skip("skipped: " + why)
	}
}

// lacking says why no cluster can be started here, "" where one can.
func lacking() string {
	if os.Geteuid() != 0 {
		return "only root can start Slurm's daemons"
	}
	for _, name := range []string{"sbatch", "slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd"} {
		if !installed(name) {
			return fmt.Sprintf("Slurm's %s is not installed (.ci/slurm does that)", name)
		}
	}
	return ""
}

// installed also looks where only root's PATH does.
func installed(name string) bool {
	if _, err := exec.LookPath(name); err == nil {
		return true
	}
	_, err := exec.LookPath(filepath.Join("/usr/sbin", name))
	return err == nil
}

// readPID reads the file that slurm-up writes of a component: its process ID
// and start time.
func readPID(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	pid, _, _ := strings.Cut(string(text), " ")
	return strconv.Atoi(pid)
}
