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

	"molrun/app/test/must"
)

// Shared is one cluster for all tests of a package. The first test that needs it starts
// it. If SLURM_TEST_DIR is the state directory of a running cluster, as printed by
// slurm-up, Shared uses that cluster and leaves it running.
type Shared struct {
	Knobs Knobs

	mu      sync.Mutex
	cluster *Cluster
	err     error // from starting the cluster
}

// Start returns the cluster with all its components running, even if the previous test
// stopped some. It skips the test if no cluster can be started here.
func (s *Shared) Start(t testing.TB) *Cluster {
	t.Helper()
	skipWithoutSlurm(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil: // don't retry a start that has failed
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

// Close stops the cluster and removes all its files. If Close is not called, that happens
// when the process exits.
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

// skipWithoutSlurm skips a test if no cluster can be started here, or fails it where
// skipping is not allowed.
func skipWithoutSlurm(t testing.TB) {
	t.Helper()
	if why := whyNoCluster(); why != "" {
		must.Skip(t, "%s", why)
	}
}

// whyNoCluster returns the reason that no cluster can be started here, or "" if one can.
func whyNoCluster() string {
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

// installed reports whether a program is installed. It also looks in /usr/sbin, which
// might be on root's PATH only.
func installed(name string) bool {
	if _, err := exec.LookPath(name); err == nil {
		return true
	}
	_, err := exec.LookPath(filepath.Join("/usr/sbin", name))
	return err == nil
}

// readPID reads the PID from a file that slurm-up writes for a component, which contains
// the PID and the start time.
func readPID(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	pid, _, _ := strings.Cut(string(text), " ")
	return strconv.Atoi(pid)
}
