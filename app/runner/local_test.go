package runner

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/executor/local"
	_ "molrun/app/task/gauged" // the test binary runs tasks, as molrun does
	"molrun/app/test/must"
)

// shFile runs shell scripts, for tests only.
const shFile = `
format = 1
type = "sim"
version = "1"
title = "Run a script"
retries = 1
max_runtime = "1h"
command = ["sh", "-c", "{settings.script}", "sh", "{out}"]

[[parameters]]
name = "script"
type = "string"
required = true
`

// onThisMachine returns a world whose tasks are processes on that many CPUs, with the
// real clock.
func onThisMachine(t *testing.T, cpus int, cores [][]int) *world {
	t.Helper()
	w := newWorld(t)
	w.Service = w.service(shFile)
	w.jobs = w.Service.Runs
	program, err := os.Executable()
	must.OK(t, err)
	e := local.New(local.Options{Program: program, CPUs: cpus, MemoryBytes: 4 * gib, Cores: cores})
	t.Cleanup(func() { must.OK(t, e.Close()) })
	w.front = e
	w.options.Log = zerolog.New(zerolog.NewTestWriter(t))
	return w
}

// TestProcessesRunOnCPUsOfTheirOwn starts one job before and one after a restart.
func TestProcessesRunOnCPUsOfTheirOwn(t *testing.T) {
	cores, why := local.Cores(2)
	if cores == nil {
		t.Skip(why)
	}
	w := onThisMachine(t, 2, cores)
	stop := w.start()
	gate := w.dir + "/gate"
	settings := fmt.Sprintf(`{"script":"grep Cpus_allowed_list: /proc/self/status; until [ -e %s ]; do sleep 0.05; done"}`, gate)
	ids := []app.JobID{w.submit(ann, "before", settings)}
	w.until("before", app.Running)
	stop()
	w.start()
	ids = append(ids, w.submit(ann, "after", settings))
	w.until("after", app.Running)
	must.OK(t, os.WriteFile(gate, nil, 0o600))
	seen := map[string]bool{}
	for i, name := range []string{"before", "after"} {
		if r := w.finished(name); r.Status != app.Completed {
			t.Fatalf("%s: %+v", name, r.Failure)
		}
		cpu := strings.TrimSpace(strings.TrimPrefix(w.checkResult(ids[i])["log.txt"], "Cpus_allowed_list:"))
		if strings.ContainsAny(cpu, ",-") || cpu == "" || seen[cpu] {
			t.Errorf("%s ran on the CPUs %q, after %v", name, cpu, seen)
		}
		seen[cpu] = true
	}
}
