package sandbox

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sharedDevices are what every program on a GPU needs, whichever GPU it is.
var sharedDevices = []string{
	"dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-uvm-tools", "dev/nvidia-modeset", "dev/nvidia-caps",
	"dev/kfd", "dev/dri",
}

// cards returns the cards of the GPUs.
func (c Config) cards() []string {
	if c.Cards != nil {
		return c.Cards
	}
	return c.GPUs
}

// gpuDevices returns the device files of the granted GPUs below root, which is /
// except in tests. If the GPUs are not named by UUID, or the driver does not say
// which device a UUID is, it gives those of all GPUs, and programs have only
// CUDA_VISIBLE_DEVICES to know which are theirs. Those of instances (MIG) are their card's
// and, in nvidia-caps, those of every instance.
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
		return found // never: the pattern is valid
	}
	if granted := deviceNames(root, gpus); granted != nil {
		all = slices.DeleteFunc(all, func(path string) bool { return !slices.Contains(granted, filepath.Base(path)) })
	}
	return append(found, all...)
}

// deviceNames returns the names of the GPUs' devices, nil if one is unknown.
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
		return minors // never: the pattern is valid
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
