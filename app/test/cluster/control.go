package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The components of a cluster, in addition to its nodes c1, c2 and so on.
const (
	Controller = "ctld"
	Accounting = "dbd"
	Database   = "db"
	Munge      = "munge"
)

// Env returns the environment that makes Slurm's commands use this cluster.
func (c *Cluster) Env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "SLURM_CONF=" + c.Conf}
}

// Up starts the named components, or all of them, unless they are already running, and
// waits until the cluster accepts jobs. It returns nodes in state DOWN to service.
func (c *Cluster) Up(t testing.TB, components ...string) {
	t.Helper()
	if err := c.up(nil, components...); err != nil {
		t.Fatal(err)
	}
}

// Stop shuts down components in the given order. A node's jobs keep running when its
// slurmd is stopped.
func (c *Cluster) Stop(t testing.TB, components ...string) {
	t.Helper()
	c.down(t, nil, components)
}

// Kill kills components with SIGKILL. A node's jobs keep running when its slurmd is
// killed.
func (c *Cluster) Kill(t testing.TB, components ...string) {
	t.Helper()
	c.down(t, []string{"--kill"}, components)
}

// CrashNode simulates a power failure of a node: its slurmd and all its jobs die.
func (c *Cluster) CrashNode(t testing.TB, node string) {
	t.Helper()
	c.down(t, []string{"--node-crash"}, []string{node})
}

func (c *Cluster) down(t testing.TB, flags, components []string) {
	t.Helper()
	if len(components) == 0 {
		t.Fatal("name the components")
	}
	args := append([]string{"slurm-down"}, flags...)
	if err := c.script(nil, append(append(args, c.state), components...)...); err != nil {
		t.Fatal(err)
	}
}

// Run runs a Slurm command and returns its output.
func (c *Cluster) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(c.Env(), "LC_ALL=C")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, out, stderr.String())
	}
	return string(out)
}

// Process returns the PID of a running component, for signals such as STOP.
func (c *Cluster) Process(t testing.TB, component string) int {
	t.Helper()
	pid, err := readPID(filepath.Join(c.state, "run", component+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// logIfFailed logs the last lines of the daemons' logs if the test has failed.
func (c *Cluster) logIfFailed(t testing.TB) {
	if !t.Failed() {
		return
	}
	logs, err := filepath.Glob(filepath.Join(c.state, "log", "slurm*.log"))
	if err != nil {
		t.Error(err)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		lines := strings.Split(string(text), "\n")
		t.Logf("%s:\n%s", filepath.Base(name), strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}
