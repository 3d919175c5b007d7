package task

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

// gpuDevices gives the device files of the granted GPUs below root, which is /
// but in tests. GPUs are told apart where they are named by UUID and the driver
// says which device that is; else all are given, and CUDA_VISIBLE_DEVICES alone
// tells programs which are theirs.
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
		return found // the pattern is right
	}
	if own := ownDevices(root, gpus); own != nil {
		all = slices.DeleteFunc(all, func(path string) bool { return !slices.Contains(own, filepath.Base(path)) })
	}
	return append(found, all...)
}

// ownDevices gives the names of the granted GPUs' devices, nil where one of
// them can't be told.
func ownDevices(root string, gpus []string) []string {
	minors := deviceMinors(root)
	var own []string
	for _, gpu := range gpus {
		minor, ok := minors[gpu]
		if !ok {
			return nil
		}
		own = append(own, "nvidia"+minor)
	}
	return own
}

// deviceMinors reads what the driver says of its GPUs: device numbers by UUID.
func deviceMinors(root string) map[string]string {
	minors := map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	if err != nil {
		return minors // the pattern is right
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

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
