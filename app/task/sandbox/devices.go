package sandbox

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sharedDevices are needed by every GPU program, whichever GPU it uses.
var sharedDevices = []string{
	"dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-uvm-tools", "dev/nvidia-modeset", "dev/nvidia-caps",
	"dev/kfd", "dev/dri",
}

// cards returns the physical cards of the GPUs.
func (c Config) cards() []string {
	if c.Cards != nil {
		return c.Cards
	}
	return c.GPUs
}

// gpuDevices returns the device files of the granted GPUs below root, which is / except
// in tests. If the GPUs are not named by UUID, or the driver does not report the device
// of a UUID, it returns the devices of all GPUs, and only CUDA_VISIBLE_DEVICES restricts
// programs to theirs. The devices of MIG instances are those of their card and, in
// nvidia-caps, those of every instance.
func gpuDevices(root string, gpus []string) []string {
	if len(gpus) == 0 {
		return nil
	}
	var found []string
	for _, name := range sharedDevices {
		if path := filepath.Join(root, name); exists(path) {
			found = append(found, path)
		}
	}
	all, err := filepath.Glob(filepath.Join(root, "dev/nvidia[0-9]*"))
	if err != nil {
		return found // unreachable: the pattern is valid
	}
	if granted := deviceNames(root, gpus); granted != nil {
		all = slices.DeleteFunc(all, func(path string) bool { return !slices.Contains(granted, filepath.Base(path)) })
	}
	return append(found, all...)
}

// deviceNames returns the names of the GPUs' devices, or nil if one is unknown.
func deviceNames(root string, gpus []string) []string {
	minors := deviceMinors(root)
	var names []string
	for _, gpu := range gpus {
		minor, ok := minors[gpu]
		if !ok {
			return nil
		}
		names = append(names, "nvidia"+minor)
	}
	return names
}

// deviceMinors reads the device numbers of GPUs, by UUID, from the driver.
func deviceMinors(root string) map[string]string {
	minors := map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	if err != nil {
		return minors // unreachable: the pattern is valid
	}
	for _, file := range files {
		fields := readFields(file)
		if fields["GPU UUID"] != "" && fields["Device Minor"] != "" {
			minors[fields["GPU UUID"]] = fields["Device Minor"]
		}
	}
	return minors
}

// readFields reads lines such as "Device Minor: 	 0".
func readFields(file string) map[string]string {
	fields := map[string]string{}
	f, err := os.Open(file)
	if err != nil {
		return fields
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return fields
}
