package gpu_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/executor/local/gpu"
	"molrun/app/test/must"
	"molrun/app/test/smi"
)

// watch returns a watcher of the stand-in for nvidia-smi.
func watch(t *testing.T, s *smi.StandIn, o gpu.Options) *gpu.Watcher {
	t.Helper()
	o.Program = s.Program
	if o.Root == "" {
		o.Root = t.TempDir()
	}
	w := gpu.New(o)
	t.Cleanup(func() {
		must.OK(t, w.Close())
		if s.Twice() {
			t.Error("two processes of nvidia-smi ran at once")
		}
	})
	return w
}

// text formats a state for comparison.
func text(s gpu.State) string {
	all := []string{"jobs: " + strings.Join(s.GPUs, " ")}
	for _, g := range s.Faulty {
		all = append(all, fmt.Sprintf("%s: %s %s", g.Fault, g.Name, g.Text))
	}
	if s.Unknown {
		all = append(all, "unknown")
	}
	return strings.Join(append(all, s.Notes...), "\n")
}

// TestDriverReleases uses output in the format of several driver releases, with made-up
// values. A lost GPU's card is identified in several ways, or not at all.
func TestDriverReleases(t *testing.T) {
	t.Parallel()
	tests := []struct {
		release  string
		cards    string
		status   int
		list     string
		old      bool   // the driver does not support the MIG fields
		one      string // output for the card 0000:3B:00.0 alone
		want     []string
		smallest int64
	}{
		{
			release: "418: without MIG, no ECC", old: true,
			cards: "0, GPU-a1, 00000000:01:00.0, 11019, 12, 0",
			want:  []string{"jobs: GPU-a1"}, smallest: 11019 << 20,
		},
		{
			release: "450: instances by card and number", cards: "0, GPU-b1, 00000000:07:00.0, 40536, 0, [N/A], 0, Enabled\n1, GPU-b2, 00000000:0F:00.0, 40536, 0, 0, 0, Disabled",
			list: "GPU 0: A100-SXM4-40GB (UUID: GPU-b1)\n  MIG 3g.20gb Device 0: (UUID: MIG-GPU-b1/1/0)\n  MIG 3g.20gb Device 1: (UUID: MIG-GPU-b1/2/0)\nGPU 1: A100-SXM4-40GB (UUID: GPU-b2)",
			want: []string{"jobs: MIG-GPU-b1/1/0 MIG-GPU-b1/2/0 GPU-b2"}, smallest: 20 << 30,
		},
		{
			release: "460: a lost card hides the others", cards: "Unable to determine the device handle for GPU 0000:1A:00.0: GPU is lost.  Reboot the system to recover this GPU", status: 15,
			one:  "1, GPU-c2, 00000000:3B:00.0, 32510, 0, 0, 0, [N/A]",
			want: []string{"jobs: GPU-c2", "lost: 0000:1A:00.0 is lost"}, smallest: 32510 << 20,
		},
		{
			release: "470: values of a lost card", cards: "0, GPU-d1, 00000000:1A:00.0, 16160, 0, 0, 0, [N/A]\n1, GPU-d2, 00000000:1B:00.0, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]",
			want: []string{"jobs: GPU-d1", "lost: GPU-d2 is lost"}, smallest: 16160 << 20,
		},
		{
			release: "510: not even a UUID", cards: "0, [Unknown Error], 00000000:41:00.0, [Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error], [Unknown Error]\n1, GPU-e2, 00000000:42:00.0, 24564, 0, 0, [N/A], [N/A]",
			want: []string{"jobs: GPU-e2", "lost: 0000:41:00.0 is lost (Unknown Error)"}, smallest: 24564 << 20,
		},
		{
			release: "525: MIG without instances", cards: "0, GPU-f1, 00000000:81:00.0, 81920, 0, [N/A], 0, Enabled\n1, GPU-f2, 00000000:C1:00.0, 81920, 0, 0, 0, Disabled",
			list: "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-f1)\nGPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-f2)",
			want: []string{"jobs: GPU-f2", "no-instances: GPU-f1 is in MIG mode, but has no instances"}, smallest: 80 << 30,
		},
		{
			release: "535: an error message without a space", cards: "Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error\n0, GPU-g1, 00000000:17:00.0, 46068, 0, 0, 0, [N/A]", status: 255,
			want: []string{"jobs: GPU-g1", "lost: 0000:CB:00.0 is lost (Unknown Error)"}, smallest: 46068 << 20,
		},
		{
			release: "550: a warning", cards: "0, GPU-h1, 00000000:B3:00.0, 81559, 0, 0, 0, Disabled\nWARNING: infoROM is corrupted at gpu 0000:B3:00.0", status: 14,
			want: []string{"jobs: GPU-h1", "WARNING: infoROM is corrupted at gpu 0000:B3:00.0", "exit status 14"}, smallest: 81559 << 20,
		},
		{
			release: "560: memory errors, and a profile with media engines", cards: "0, GPU-i1, 00000000:18:00.0, 81559, 0, 0, 3, Disabled\n1, GPU-i2, 00000000:2A:00.0, 81559, 0, [N/A], 0, Enabled",
			list: "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-i1)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-i2)\n  MIG 1g.10gb+me  Device  0: (UUID: MIG-77aa)\n  MIG 1c.3g.40gb  Device  1: (UUID: MIG-77bb)",
			want: []string{"jobs: MIG-77aa MIG-77bb", "memory: GPU-i1 has uncorrected memory errors: 3"}, smallest: 10 << 30,
		},
		{
			release: "570: needs a reset, and an error state", cards: "0, GPU-j1, 00000000:18:00.0, 97887, 0, [GPU requires reset], [GPU requires reset], [N/A]\n1, GPU-j2, 00000000:2A:00.0, ERR!, ERR!, ERR!, ERR!, [N/A]\n2, GPU-j3, 00000000:2B:00.0, 97887, 0, 0, [Not Supported], [Not Supported]",
			want: []string{"jobs: GPU-j3", "reset: GPU-j1 needs a reset", "reset: GPU-j2 is in an error state (ERR!)"}, smallest: 97887 << 20,
		},
		{
			release: "580: memory shared with the CPU", cards: "0, GPU-k1, 0000000F:01:00.0, [N/A], [N/A], 0, [N/A], [N/A]",
			want: []string{"jobs: GPU-k1"},
		},
		{
			release: "610: number and place of a lost card", cards: "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n0, GPU-l1, 00000000:33:00.0, 81559, 0, 0, 0, Disabled\n",
			want: []string{"jobs: GPU-l1", "lost: 0000:34:00.0 is lost (Unknown Error)"}, smallest: 81559 << 20,
		},
		{release: "no cards", cards: "No devices were found", status: 6, want: []string{"jobs: ", "No devices were found", "exit status 6"}},
		{
			release: "no driver", cards: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", status: 9,
			want: []string{"jobs: ", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver", "exit status 9"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.release, func(t *testing.T) {
			t.Parallel()
			s, root := smi.New(t).Cards(tt.status, tt.cards).Set("list", tt.list), t.TempDir()
			if tt.old {
				s.Set("old", "")
			}
			for _, bus := range []string{"0000:1a:00.0", "0000:3b:00.0"} { // the driver lists lost cards, too
				must.OK(t, os.MkdirAll(filepath.Join(root, "proc/driver/nvidia/gpus", bus), 0o700))
			}
			s.Set("card-0000:3B:00.0", tt.one)
			w := watch(t, s, gpu.Options{Root: root})
			must.OK(t, w.Check(t.Context()))
			must.Equal(t, "state", text(w.State()), strings.Join(tt.want, "\n"))
			must.Equal(t, "smallest", w.State().Smallest, tt.smallest)
		})
	}
}

// TestCardsComeAndGo follows one machine while cards fail and return.
func TestCardsComeAndGo(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	s := smi.New(t)
	w := watch(t, s, gpu.Options{Log: zerolog.New(log)})
	a, b, c := smi.Card(0, "GPU-a"), smi.Card(1, "GPU-b"), smi.Card(2, "GPU-c")
	steps := []struct {
		what   string
		status int
		cards  []string
		list   string
		want   string
		logs   string // the logged message, "" if none
	}{
		{"one is lost at the start", 15, []string{a, "Unable to determine the device handle for GPU0000:11:00.0: GPU is lost.", c}, "", "jobs: GPU-a GPU-c\nlost: 0000:11:00.0 is lost", "GPU is faulty, so jobs can't use it"},
		{"still", 15, []string{a, "Unable to determine the device handle for GPU0000:11:00.0: GPU is lost.", c}, "", "jobs: GPU-a GPU-c\nlost: 0000:11:00.0 is lost", ""},
		{"it is back", 0, []string{a, b, c}, "", "jobs: GPU-a GPU-b GPU-c", ""},
		{"another is gone", 0, []string{a, c}, "", "jobs: GPU-a GPU-c\nlost: GPU-b is no longer listed by nvidia-smi", "GPU is faulty, so jobs can't use it"},
		{"lost by number", 255, []string{"Unable to determine the device handle for GPU2: Unknown Error", a}, "", "jobs: GPU-a\nlost: GPU-b is no longer listed by nvidia-smi\nlost: GPU-c is lost (Unknown Error)", "GPU is faulty, so jobs can't use it"},
		{"all are back", 0, []string{a, b, c}, "", "jobs: GPU-a GPU-b GPU-c", "GPU is used again"},
		{"none is listed", 9, []string{"NVIDIA-SMI has failed"}, "", "jobs: \nunknown: GPU-a is not listed by nvidia-smi, which failed\nunknown: GPU-b is not listed by nvidia-smi, which failed\nunknown: GPU-c is not listed by nvidia-smi, which failed\nNVIDIA-SMI has failed\nexit status 9", "GPU is faulty, so jobs can't use it"},
		{
			"one is divided", 0,
			[]string{a, strings.Replace(b, "Disabled", "Enabled", 1), c},
			"GPU 1: X (UUID: GPU-b)\n  MIG 3g.40gb Device 0: (UUID: MIG-1)\n  MIG 3g.40gb Device 1: (UUID: MIG-2)",
			"jobs: GPU-a MIG-1 MIG-2 GPU-c", "GPU is used again",
		},
		{"divided anew", 0, []string{a, strings.Replace(b, "Disabled", "Enabled", 1), c}, "GPU 1: X (UUID: GPU-b)\n  MIG 7g.80gb Device 0: (UUID: MIG-3)", "jobs: GPU-a MIG-3 GPU-c", ""},
		{"its card is lost", 0, []string{a, "1, GPU-b, 00000000:11:00.0, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]", c}, "", "jobs: GPU-a GPU-c\nlost: MIG-3 is lost", "GPU is faulty, so jobs can't use it"},
		{"undivided", 0, []string{a, b, c}, "", "jobs: GPU-a GPU-b GPU-c", ""},
	}
	for _, step := range steps {
		s.Cards(step.status, step.cards...).Set("list", step.list)
		log.Reset()
		must.OK(t, w.Check(t.Context()))
		must.Equal(t, step.what, text(w.State()), step.want)
		if said := strings.Contains(log.String(), "GPU is"); said != (step.logs != "") || !strings.Contains(log.String(), step.logs) {
			t.Errorf("%s: log %q, want %q", step.what, log, step.logs)
		}
	}
}

func TestConfiguredGPUs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wanted []string
		want   string
	}{
		{[]string{"1"}, "jobs: GPU-b"},
		{[]string{"GPU-a", "0"}, "jobs: GPU-a"},
		{[]string{"0", "7"}, "jobs: GPU-a\nlost: 7 is not listed by nvidia-smi"},
		{[]string{"2"}, "jobs: MIG-1 MIG-2"},
		{[]string{"MIG-2", "GPU-a"}, "jobs: GPU-a MIG-2"},
	} {
		s := smi.New(t).Cards(0, smi.Card(0, "GPU-a"), smi.Card(1, "GPU-b"), "2, GPU-c, 00000000:33:00.0, 81559, 0, 0, 0, Enabled")
		s.Set("list", "GPU 2: X (UUID: GPU-c)\n  MIG 3g.40gb Device 0: (UUID: MIG-1)\n  MIG 3g.40gb Device 1: (UUID: MIG-2)")
		w := watch(t, s, gpu.Options{Selected: tt.wanted})
		must.OK(t, w.Check(t.Context()))
		must.Equal(t, fmt.Sprint(tt.wanted), text(w.State()), tt.want)
	}
}

// TestNumbersStayWithTheirCards removes the first card, after which nvidia-smi renumbers
// the others.
func TestNumbersStayWithTheirCards(t *testing.T) {
	t.Parallel()
	s := smi.New(t).Cards(0, smi.Card(0, "GPU-a"), smi.Card(1, "GPU-b"), smi.Card(2, "GPU-c"))
	w := watch(t, s, gpu.Options{Selected: []string{"0", "1"}})
	must.OK(t, w.Check(t.Context()))
	s.Cards(0, strings.Replace(smi.Card(1, "GPU-b"), "1,", "0,", 1), strings.Replace(smi.Card(2, "GPU-c"), "2,", "1,", 1))
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "state", text(w.State()), "jobs: GPU-b\nlost: GPU-a is no longer listed by nvidia-smi")
}

func TestWithoutNvidiaSMI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	w := gpu.New(gpu.Options{})
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "found", text(w.State()), "jobs: ")
	must.Equal(t, "count", w.State().Count(), 0)
	w = gpu.New(gpu.Options{Selected: []string{"0", "1"}})
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "as configured", text(w.State()), "jobs: 0 1")
	s := smi.New(t).Cards(0, smi.Card(0, "GPU-a"))
	t.Setenv("PATH", filepath.Dir(s.Program)+":/usr/bin:/bin")
	w = gpu.New(gpu.Options{})
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "on PATH", text(w.State()), "jobs: GPU-a")
	must.OK(t, w.Close())
}

// TestNvidiaSMIHangs has nvidia-smi hang at the start, then respond, then hang again.
func TestNvidiaSMIHangs(t *testing.T) {
	t.Parallel()
	s := smi.New(t).Cards(0, smi.Card(0, "GPU-a"), smi.Card(1, "[GPU is lost]")).Set("hang", "")
	w := watch(t, s, gpu.Options{CallBound: 2 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Fail(t, "who does not wait", w.Check(ctx), "canceled")
	must.Equal(t, "before an answer", text(w.State()), "jobs: \nunknown")
	must.Fail(t, "who waits", w.Check(t.Context()), "does not respond within 2s")
	if s := w.State(); !s.Unknown || s.Count() < 1e6 {
		t.Errorf("without an answer %+v, want an unknown number of GPUs", s)
	}
	s.Unset("hang")
	must.Become(t, "an answer", func() bool { return w.Check(t.Context()) == nil })
	healthy := "jobs: GPU-a\nlost: 0000:11:00.0 is lost"
	must.Equal(t, "at last", text(w.State()), healthy)
	s.Set("hang", "")
	must.Fail(t, "again", w.Check(t.Context()), "does not respond")
	if got := text(w.State()); !strings.HasPrefix(got, "jobs: \nunknown: GPU-a is unknown: nvidia-smi does not respond within 2s\nlost: 0000:11:00.0 is lost\n") {
		t.Errorf("state %q, want no GPU for jobs", got)
	}
	s.Unset("hang")
	must.Become(t, "an answer", func() bool { return w.Check(t.Context()) == nil })
	must.Equal(t, "in the end", text(w.State()), healthy)
}

func TestNvidiaSMICannotBeStarted(t *testing.T) {
	t.Parallel()
	s := smi.New(t).Cards(0, smi.Card(0, "GPU-a"))
	w := watch(t, s, gpu.Options{})
	must.OK(t, w.Check(t.Context()))
	must.OK(t, os.Rename(s.Program, s.Program+".gone"))
	must.Fail(t, "look", w.Check(t.Context()), "could not be started")
	must.Equal(t, "GPUs", fmt.Sprint(w.State().GPUs), "[GPU-a]")
}

// TestGPUsOfOtherPrograms has a foreign process on each GPU.
func TestGPUsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	s := smi.New(t).Cards(0,
		smi.Card(0, "GPU-a"), smi.Card(1, "GPU-b"), "2, GPU-c, 00000000:12:00.0, 81559, 100, 55, 0, Disabled",
		"3, GPU-d, 00000000:13:00.0, [N/A], [N/A], 0, 0, [N/A]", "4, GPU-e, 00000000:14:00.0, 81559, 30000, 0, 0, Disabled")
	s.Set("apps", "GPU-a, 101, 20000\nGPU-b, 102, 300\nGPU-c, 103, 90\nGPU-d, 104, [N/A]\nGPU-e, 105, [N/A]\nGPU-x, 106, 20000\nno line")
	w := watch(t, s, gpu.Options{})
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "before it is known what jobs are", text(w.State()), "jobs: GPU-a GPU-b GPU-c GPU-d GPU-e")
	w.Hold([]string{"GPU-a"})
	occupied := "\noccupied: GPU-c is in use by other programs (PID 103)\noccupied: GPU-e is in use by other programs (PID 105)"
	must.Equal(t, "one of a job", text(w.State()), "jobs: GPU-a GPU-b GPU-d"+occupied)
	<-w.Changed()
	w.Hold(nil)
	must.Equal(t, "a job that ended after the look", text(w.State()), "jobs: GPU-a GPU-b GPU-d"+occupied)
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "what it has left behind", text(w.State()), "jobs: GPU-b GPU-d\noccupied: GPU-a is in use by other programs (PID 101)"+occupied)
	s.Set("apps", "")
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "free again", text(w.State()), "jobs: GPU-a GPU-b GPU-c GPU-d GPU-e")
}

// TestInstanceOfAJobIsGone checks that an instance held by a job stays listed until the
// job has ended.
func TestInstanceOfAJobIsGone(t *testing.T) {
	t.Parallel()
	divided := "0, GPU-a, 00000000:10:00.0, 81559, 0, [N/A], 0, Enabled"
	s := smi.New(t).Cards(0, divided).Set("list", "GPU 0: X (UUID: GPU-a)\n  MIG 3g.40gb Device 0: (UUID: MIG-1)")
	w := watch(t, s, gpu.Options{})
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "card", w.State().Cards["MIG-1"], "GPU-a")
	w.Hold([]string{"MIG-1"})
	s.Cards(0, smi.Card(0, "GPU-a"))
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "while a job has it", text(w.State()), "jobs: GPU-a\nlost: MIG-1 no longer exists: its card was repartitioned")
	w.Hold(nil)
	must.OK(t, w.Check(t.Context()))
	must.Equal(t, "after that", text(w.State()), "jobs: GPU-a")
}

func TestWatcherLooksByItself(t *testing.T) {
	t.Parallel()
	s := smi.New(t).Cards(0, smi.Card(0, "GPU-a"))
	w := watch(t, s, gpu.Options{Interval: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Changed()
	must.Equal(t, "at first", text(w.State()), "jobs: GPU-a")
	s.Cards(0, smi.Card(0, "GPU-a"), smi.Card(1, "GPU-b"))
	<-w.Changed()
	must.Equal(t, "later", text(w.State()), "jobs: GPU-a GPU-b")
	cancel()
	must.OK(t, <-done)
}

func TestTroubleInWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state gpu.State
		want  string
	}{
		{gpu.State{GPUs: []string{"GPU-a"}}, ""},
		{gpu.State{GPUs: []string{"GPU-a"}, Faulty: []app.FaultyGPU{{Name: "GPU-b", Fault: app.GPULost, Text: "is lost"}}}, "1 can be used; GPU-b is lost"},
		{gpu.State{GPUs: []string{"GPU-a"}, Notes: []string{"WARNING", "exit status 14"}}, "1 can be used; nvidia-smi: WARNING; exit status 14"},
		{gpu.State{Unknown: true}, "0 can be used; nvidia-smi does not respond"},
	} {
		must.Equal(t, "trouble", tt.state.Summary(), tt.want)
	}
}
