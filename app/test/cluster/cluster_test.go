package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/test/must"
)

// With the argument start-and-wait, TestMain starts a cluster and waits to be killed,
// like a test process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "start-and-wait" {
		c, err := start(Knobs{Nodes: 1, NoAccounting: true})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(c.base, c.ports.first)
		select {}
	}
	os.Exit(m.Run())
}

func TestClusterRunsJobsAndAccountsForThem(t *testing.T) {
	var shared Shared
	c := shared.Start(t)
	t.Cleanup(func() {
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
	})
	c.Run(t, "sbatch", "--wait", "--output=/dev/null", "--job-name=first", "--wrap=true")
	must.Become(t, "COMPLETED in sacct", func() bool {
		return strings.Contains(c.Run(t, "sacct", "-X", "-n", "-P", "--name=first", "-o", "State"), "COMPLETED")
	})
	before := c.Process(t, Controller)
	c.Kill(t, Controller)
	if alive(before) {
		t.Error("the killed controller still runs")
	}
	if again := shared.Start(t); again != c || c.Process(t, Controller) == before {
		t.Error("the next test does not get the same cluster with a new controller")
	}
	must.Contain(t, "scontrol ping", c.Run(t, "scontrol", "ping"), "UP")
}

func TestCrashOfANodeKillsItsJobs(t *testing.T) {
	c := New(t, Knobs{Nodes: 1, NoAccounting: true})
	file := filepath.Join(c.base, "pid")
	script := "echo $$ >" + file + ".tmp; mv " + file + ".tmp " + file + "; sleep 600"
	c.Run(t, "sbatch", "--output=/dev/null", "--wrap=exec env -i PATH=/usr/bin:/bin sh -c '"+script+"'")
	var pid int
	must.Become(t, "the job to start", func() bool {
		_, err := fmt.Sscan(read(file), &pid)
		return err == nil
	})
	c.CrashNode(t, "c1")
	must.Become(t, "the job's death", func() bool { return !alive(pid) })
}

func TestClusterIsRemovedWhenItsTestIsKilled(t *testing.T) {
	skipWithoutSlurm(t)
	player := exec.Command(os.Args[0], "start-and-wait")
	out, err := player.StdoutPipe()
	must.OK(t, err)
	must.OK(t, player.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	killed := player.Process.Kill()
	_ = player.Wait()
	var base string
	var port int
	if _, scanned := fmt.Sscan(line, &base, &port); err != nil || killed != nil || scanned != nil {
		t.Fatalf("%v, %v, %v: %s", err, killed, scanned, line)
	}
	must.Become(t, "removal of "+base, func() bool {
		_, err := os.Stat(base)
		return errors.Is(err, fs.ErrNotExist)
	})
	if !free(port, 4) {
		t.Error("daemons still listen after the purge of the cluster")
	}
}

func read(file string) string {
	text, _ := os.ReadFile(file)
	return string(text)
}

// alive reports whether a process is running. A zombie does not count, because on some
// machines init does not reap orphans.
func alive(pid int) bool {
	_, rest, found := strings.Cut(read(fmt.Sprintf("/proc/%d/stat", pid)), ") ")
	return syscall.Kill(pid, 0) == nil && found && !strings.HasPrefix(rest, "Z")
}
