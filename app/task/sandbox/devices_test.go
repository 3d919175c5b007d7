package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"molrun/app/test/must"
)

// The test fakes the driver's files.
func TestOnlyGrantedGPUsAreInTheSandbox(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) { must.Write(t, filepath.Join(root, path), text) }
	for _, name := range []string{"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "sda"} {
		put("dev/"+name, "")
	}
	for i, uuid := range []string{"GPU-aa", "GPU-bb"} {
		put(fmt.Sprintf("proc/driver/nvidia/gpus/0000:0%d:00.0/information", i),
			fmt.Sprintf("Model: \t\t Stand-in\nGPU UUID:   \t %s\nDevice Minor: \t %d\n", uuid, i))
	}
	instance := Config{GPUs: []string{"MIG-1"}, Cards: []string{"GPU-bb"}}
	shared := []string{"nvidia-uvm", "nvidiactl"}
	tests := []struct {
		name string
		gpus []string
		want []string
	}{
		{"none", nil, nil},
		{"one", []string{"GPU-bb"}, append([]string{"nvidia1"}, shared...)},
		{"both", []string{"GPU-aa", "GPU-bb"}, append([]string{"nvidia0", "nvidia1"}, shared...)},
		{"an instance", instance.cards(), append([]string{"nvidia1"}, shared...)},
		{"by number", []string{"0"}, append([]string{"nvidia0", "nvidia1", "nvidia10"}, shared...)},
	}
	for _, tt := range tests {
		var want []string
		for _, name := range tt.want {
			want = append(want, filepath.Join(root, "dev", name))
		}
		got := gpuDevices(root, tt.gpus)
		slices.Sort(got)
		slices.Sort(want)
		must.Equal(t, tt.name, got, want)
	}
}
