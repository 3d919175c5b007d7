package task

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
	"molrun/app/test/containertest"
	"molrun/app/test/must"
)

// contained creates an attempt whose scripts run in containers.
func contained(t *testing.T, scripts ...string) *attempt {
	t.Helper()
	store := containertest.Podman(t)
	a := newAttempt(t, scripts...)
	a.isolation.Sandbox.Image, a.isolation.Containers = containertest.Image, store.Options
	t.Cleanup(func() {
		if left := store.Containers(t, a.dir); len(left) > 0 {
			t.Errorf("leftover containers: %q", left)
		}
	})
	a.env = append(a.env, "PATH="+store.Path+":"+os.Getenv("PATH"))
	return a
}

func TestProgramsOfAnImageRunInAContainer(t *testing.T) {
	t.Parallel()
	a := contained(t, `echo "$PATH" "$SECRET" "$GREETING"; ls /.molrun; cat /etc/passwd`, "", "nosuch")
	a.env = append(a.env, "SECRET=hunter2")
	a.spec.Env = map[string]string{"GREETING": "hello"}
	a.spec.Program = "/where/molrun/is"
	a.spec.Steps[1].Argv = []string{"/where/molrun/is", "use", "8"}
	a.spec.Steps[2].Argv = []string{"nosuch"}
	o := a.start().outcome()
	if o.Cause != protocol.CauseCannotStart || o.Isolation != "podman" || !strings.Contains(o.Message, `The image does not contain the program "nosuch"`) {
		t.Errorf("outcome %+v", o)
	}
	want, err := containertest.Podman(t).Run(nil, "image", "inspect", "--format={{.Id}}", containertest.Image)
	if err != nil || o.Image == nil || o.Image.ID != "sha256:"+want || o.Image.Name != containertest.Image {
		t.Errorf("image %+v, want %s, %v", o.Image, want, err)
	}
	log := a.read(LogFile)
	if !strings.HasPrefix(log, "/usr/local/sbin:") || !strings.Contains(log, "  hello\nmolrun\nsocket\nroot:x:0:0:root:/root:/bin/sh\n") {
		t.Errorf("log %s", log)
	}
	if info, err := os.ReadDir(a.dir); err != nil || slices.ContainsFunc(info, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".box") }) {
		t.Errorf("leftover next to the work directory: %v, %v", info, err)
	}
}

func TestImageThatIsNotHereIsNamed(t *testing.T) {
	t.Parallel()
	for image, says := range map[string]string{
		"localhost/nosuch:1":          "The image localhost/nosuch:1 does not exist on this machine; load it with: podman load -i FILE.",
		"docker://localhost/nosuch:1": "The image localhost/nosuch:1 does not exist on this machine; load it with: podman load -i FILE.",
		"/nosuch/image.sif":           "Its program is in a container image, but apptainer was not found in PATH.",
	} {
		a := contained(t, "touch out/ran")
		a.isolation.Sandbox.Image = image
		if o := a.start().outcome(); o.Cause != protocol.CauseCannotStart || o.Message != says {
			t.Errorf("%s: outcome %+v", image, o)
		}
	}
}

// busy is a program that neither exits on its own nor on SIGTERM.
const busy = `trap "" TERM; (trap "" TERM; setsid sleep 7331) & touch out/ready; while :; do sleep 1; done`

func TestContainerDiesWithItsTask(t *testing.T) {
	t.Parallel()
	a := contained(t, busy)
	r := a.start()
	r.untilFile(WorkDir, OutDir, "ready")
	if all := containertest.Podman(t).Containers(t, a.dir); len(all) != 1 || !strings.HasPrefix(all[0], "molrun-") {
		t.Errorf("containers %q while the task runs, want one", all)
	}
	r.signal(syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.OK(t, process.KillMarked(ctx, a.spec.Token))
	must.OK(t, AwaitSandboxEnd(ctx, a.dir))
}

func TestContainerEndsWhenItsTaskIsStopped(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		stop func(r *running)
		want protocol.Cause
	}{
		{"stopped", func(r *running) {
			r.untilFile(WorkDir, OutDir, "ready")
			if _, err := RequestStop(r.dir); err != nil {
				r.t.Error(err)
			}
			r.signal(syscall.SIGTERM)
		}, protocol.CauseStopped},
		{"while the container is made", func(r *running) {
			r.untilFile(RunFile)
			r.signal(syscall.SIGTERM)
		}, protocol.CauseInterrupted},
		{"timeout", func(r *running) {}, protocol.CauseTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := contained(t, busy)
			a.spec.GraceSeconds = 1
			if tt.want == protocol.CauseTimeout {
				a.spec.MaxRuntimeSeconds = 2
			}
			r := a.start()
			tt.stop(r)
			r.ends(tt.want)
		})
	}
}

// TestSweepRemovesWhatACrashHasLeft kills every process that could remove the container.
func TestSweepRemovesWhatACrashHasLeft(t *testing.T) {
	t.Parallel()
	a, other := contained(t, busy), contained(t, busy)
	r, going := a.start(), other.start()
	r.untilFile(WorkDir, OutDir, "ready")
	going.untilFile(WorkDir, OutDir, "ready")
	below := append(process.Below(r.cmd.Process.Pid), process.Descendant{PID: r.cmd.Process.Pid})
	for _, p := range below {
		syscall.Kill(p.PID, syscall.SIGKILL)
	}
	r.wait()
	runtime, err := a.isolation.Containers.FindRuntime(a.isolation.Sandbox.Image)
	must.OK(t, err)
	runtime.Path = filepath.Join(containertest.Podman(t).Path, "podman")
	below0 := containertest.Podman(t).Containers(t, a.dir)
	over := func(dir string) bool {
		locked, err := Locked(dir)
		return !locked && err == nil
	}
	for _, dir := range []string{a.dir, other.dir} {
		if err := runtime.CleanUp(t.Context(), filepath.Dir(dir), over); err != nil {
			t.Errorf("%+v", err)
		}
	}
	if left := containertest.Podman(t).Containers(t, a.dir); len(below0) != 1 || len(left) > 0 {
		t.Errorf("leftover containers: %q after the sweep of %q", left, below0)
	}
	if all := containertest.Podman(t).Containers(t, other.dir); len(all) != 1 {
		t.Errorf("cleanup removed the container of a running task: %q", all)
	}
	going.signal(syscall.SIGTERM)
	going.outcome()
}
