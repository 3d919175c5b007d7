package local_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/executor/local"
	"molrun/app/test/must"
)

// standInSMI writes a script that stands in for nvidia-smi.
func standInSMI(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	must.Program(t, path, "#!/bin/sh\n"+script)
	return path
}

func TestDetectFindsGPUs(t *testing.T) {
	tests := []struct {
		name, script string
		want         []string
		fails        string
	}{
		{
			"two",
			`[ "$*" = "--query-gpu=index,uuid --format=csv,noheader" ] && printf '0, GPU-aa\n1, GPU-bb\n'`,
			[]string{"GPU-aa", "GPU-bb"},
			"",
		},
		{"none", "exit 0", nil, ""},
		{
			"one is lost", `echo 0, GPU-aa; echo "Unable to determine the device handle for GPU0000:0B:00.0: GPU is lost."; exit 15`,
			[]string{"GPU-aa"},
			"0000:0B:00.0: GPU is lost.; exit status 15",
		},
		{"a warning", `echo 0, GPU-aa; echo "WARNING: infoROM is corrupted at gpu 0000:B3:00.0"; exit 14`, []string{"GPU-aa"}, "infoROM is corrupted"},
		{
			"instances", `case $1 in -L) printf 'GPU 0: NVIDIA A100 (UUID: GPU-aa)\n  MIG 3g.20gb Device 0: (UUID: MIG-1)\n  MIG 3g.20gb Device 1: (UUID: MIG-2)\nGPU 1: NVIDIA A100 (UUID: GPU-bb)\n';; *) printf '0, GPU-aa\n1, GPU-bb\n';; esac`,
			[]string{"MIG-1", "MIG-2", "GPU-bb"},
			"",
		},
		{"no driver", "echo no driver; exit 9", nil, "exit status 9"},
		{"other output", "echo No devices were found", nil, "No devices were found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := local.Detect(standInSMI(t, tt.script))
			must.Equal(t, "GPUs", got.GPUs, tt.want)
			if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("error %v, want %q", err, tt.fails)
			}
			if got.CPUs < 1 || got.MemoryBytes < 64<<20 {
				t.Errorf("capacity %+v, want CPUs and memory even without GPUs", got)
			}
		})
	}
}

func TestDetectLooksOnPATH(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if got, err := local.Detect(""); len(got.GPUs) > 0 || err != nil {
		t.Errorf("without nvidia-smi %q, %v; want none", got.GPUs, err)
	}
	t.Setenv("PATH", filepath.Dir(standInSMI(t, "echo 0, GPU-cc")))
	if got, err := local.Detect(""); !slices.Equal(got.GPUs, []string{"GPU-cc"}) || err != nil {
		t.Errorf("GPUs %q, %v; want the one that nvidia-smi lists", got.GPUs, err)
	}
}

func TestMemoryOfTheSmallestGPU(t *testing.T) {
	t.Parallel()
	smi := standInSMI(t, "echo '0, GPU-a, 81920'; echo '1, GPU-b, 24564'; echo '2, GPU-c, 8192'; echo '3, GPU-d, [N/A]'")
	for _, tt := range []struct {
		gpus []string
		want int64
	}{{[]string{"GPU-a", "GPU-b"}, 24564 << 20}, {[]string{"0"}, 81920 << 20}, {[]string{"GPU-d"}, 0}, {nil, 0}} {
		must.Equal(t, fmt.Sprintf("%q", tt.gpus), local.GPUMemory(smi, tt.gpus), tt.want)
	}
	must.Equal(t, "from a driver that is broken", local.GPUMemory(standInSMI(t, "exit 9"), []string{"0"}), 0)
}
