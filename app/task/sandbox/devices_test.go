package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/test/must"
)

// The driver's files stand in for GPUs.
func TestOnlyGrantedGPUsAreInTheSandbox(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for _, name := range []string{"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "sda"} {
		put("dev/"+name, "")
	}
	for i, uuid := range []string{"GPU-aa", "GPU-bb"} {
		put(fmt.Sprintf("proc/driver/nvidia/gpus/0000:0%d:00.0/information", i),
			fmt.Sprintf("Model: \t\t Stand-in\nGPU UUID:   \t %s\nDevice Minor: \t %d\n", uuid, i))
	}
	shared := []string{"nvidia-uvm", "nvidiactl"}
	tests := []struct {
		name string
		gpus []string
		want []string
	}{
		{"none", nil, nil},
		{"one", []string{"GPU-bb"}, append([]string{"nvidia1"}, shared...)},
		{"both", []string{"GPU-aa", "GPU-bb"}, append([]string{"nvidia0", "nvidia1"}, shared...)},
		{"by number", []string{"0"}, append([]string{"nvidia0", "nvidia1", "nvidia10"}, shared...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for _, name := range tt.want {
				want = append(want, filepath.Join(root, "dev", name))
			}
			got := gpuDevices(root, tt.gpus)
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
