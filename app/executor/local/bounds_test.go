package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/task/process"
	"molrun/app/test/must"
)

func TestIsolationIsToldAsItIs(t *testing.T) {
	for want, parts := range map[string][2]string{
		"Each job runs in its own bubblewrap sandbox and cgroup (a; b).":                    {"bwrap", "/c"},
		"Each job runs in a bubblewrap sandbox (a; b).":                                     {"bwrap", ""},
		"Each job runs in its own cgroup, with the same file access as the service (a; b).": {"", "/c"},
	} {
		i := Isolation{Missing: []string{"a", "b"}}
		i.Bubblewrap, i.Cgroup = parts[0], parts[1]
		must.Equal(t, fmt.Sprintf("%+v", i), i.Sentence(), want)
	}
}

func TestIsolationSaysWhatTheSandboxLeavesOpen(t *testing.T) {
	const noFilters, namespaces = "system calls are not filtered", "can create user namespaces"
	for _, tt := range []struct {
		sized, filters bool
		says           []string
	}{{true, true, nil}, {true, false, []string{noFilters}}, {false, true, []string{namespaces}}, {false, false, []string{noFilters, namespaces}}} {
		i := Isolation{}
		i.Bubblewrap, i.Sized = "bwrap", tt.sized
		i.noteGaps(tt.filters)
		must.Equal(t, "the number of gaps", len(i.Gaps), len(tt.says))
		for _, text := range tt.says {
			must.Contain(t, "the isolation", i.Sentence(), text)
		}
	}
}

func TestMemoryOfAContainerIsItsLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.max")
	if limit, ok := containerMemory(path); ok {
		t.Errorf("without a cgroup: %d", limit)
	}
	for text, want := range map[string]int64{"1073741824\n": 1 << 30, "9223372036854771712\n": 1<<63 - 4096} {
		must.Write(t, path, text)
		if limit, ok := containerMemory(path); !ok || limit != want {
			t.Errorf("%q reads as %d, %v", text, limit, ok)
		}
	}
	must.Write(t, path, "max\n")
	if limit, ok := containerMemory(path); ok {
		t.Errorf("no limit reads as %d", limit)
	}
}

func TestOnlyTasksOfAnotherBootAreBeforeThisOne(t *testing.T) {
	now, err := process.BootID()
	must.OK(t, err)
	handle := func(boot string) app.Handle {
		return app.Handle(fmt.Sprintf(`{"pid":7,"bootId":%q}`, boot))
	}
	if id, ok := parseHandle(handle("other")); !ok || id.BootID != "other" {
		t.Fatalf("the handle reads as %+v, %v", id, ok)
	}
	started := func(boot string) *task.Started { return &task.Started{ID: process.ID{PID: 7, BootID: boot}} }
	for name, tt := range map[string]struct {
		run    *task.Started
		handle app.Handle
		want   bool
	}{
		"nothing known":                     {nil, "", false},
		"this boot by its handle":           {nil, handle(now), false},
		"another boot by its handle":        {nil, handle("other"), true},
		"this boot by its run.json":         {started(now), "", false},
		"another boot by its run.json":      {started("other"), "", true},
		"run.json is newer than the handle": {started(now), handle("other"), false},
	} {
		if got, err := beforeThisBoot(tt.run, tt.handle); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tt.want)
		}
	}
}

func TestHandleNeedsAProcess(t *testing.T) {
	for text, want := range map[app.Handle]bool{`{"pid":1}`: true, `{"pid":0}`: false, `{"pid":-1}`: false, `{}`: false, `{`: false, "": false} {
		if _, ok := parseHandle(text); ok != want {
			t.Errorf("%q: %v, want %v", text, ok, want)
		}
	}
}

func TestCloseEndsTheReaper(t *testing.T) {
	e := &Executor{reaper: newReaper()}
	for range 2 {
		must.OK(t, e.Close())
	}
	select {
	case <-e.reaper.done:
	default:
		t.Error("it still runs")
	}
}

// TestServiceLeavesACgroupOnlyIfItIsAlone uses plain folders instead of cgroups.
func TestServiceLeavesACgroupOnlyIfItIsAlone(t *testing.T) {
	parent := t.TempDir()
	self := strconv.Itoa(os.Getpid())
	procs, own := filepath.Join(parent, "cgroup.procs"), filepath.Join(parent, serviceCgroup, "cgroup.procs")
	if err := leave(parent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no cgroup: %v", err)
	}
	must.Write(t, procs, "1\n"+self+"\n")
	if err := leave(parent); err == nil {
		t.Error("it moves although another process is there")
	}
	must.Write(t, procs, self+"\n")
	if err := leave(parent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the move fails, and the error is %v", err)
	}
	must.Write(t, own, "")
	must.OK(t, leave(parent))
	if moved, err := os.ReadFile(own); err != nil || string(moved) != self {
		t.Errorf("moved %q, %v; want this process", moved, err)
	}
}
