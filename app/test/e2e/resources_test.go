package e2e

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestConfiguredResourcesAreUsed(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 8\nmemory = \"130MiB\"\ngpus = \"GPU-x,7\"\n") // enough for two jobs of 64 MiB
	u := s.user("lab", "ann@lab.example")
	show := `echo "$CUDA_VISIBLE_DEVICES" > out/devices`
	u.submit("both", "shell", script(show, `,"gpus":2`))
	u.submit("none", "shell", script(show))
	for name, want := range map[string]string{"both": "GPU-x,7\n", "none": "\n"} {
		u.finished(name)
		u.wantResult(name, "devices", want)
	}
	u.do("POST", "/submit-job", jobBody("three", script("true", `,"gpus":3`))).detail("body.settings.gpus")
	open := s.gate("go")
	u.batch("b", "shell", slices.Repeat([]string{script(open.wait())}, 3)...)
	u.waitForRows("b", 3, func(c map[string]int) bool { return c["RUNNING"] == 2 })
	j := u.until("b-3", "waiting with a reason", func(r record) bool { return r.StatusReason != "" })
	if !strings.Contains(j.StatusReason, "memory") || j.Status != "QUEUED" {
		t.Errorf("the third job, which does not fit, is %s: %q", j.Status, j.StatusReason)
	}
	open.open(t)
	u.completed("b")
}

// cpusHere is the number of CPUs that a service detects when it runs in its own process.
// It is read early, because a service in this process raises GOMAXPROCS while it runs.
var cpusHere = runtime.GOMAXPROCS(0)

func TestCPUsDefaultToThoseOfTheMachine(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	u.submit("all", "shell", script("true", fmt.Sprintf(`,"cpus":%d`, cpusHere)))
	u.completed("all")
	u.do("POST", "/submit-job", jobBody("more", script("true", fmt.Sprintf(`,"cpus":%d`, cpusHere+1)))).detail("body.settings.cpus")
}
