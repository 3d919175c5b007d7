package local

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"molrun/app"
)

// Detect returns the number of CPUs and the memory of this machine. Package gpu detects
// its GPUs.
func Detect() (app.Capacity, error) {
	memory, err := machineMemory()
	return app.Capacity{CPUs: runtime.GOMAXPROCS(0), MemoryBytes: memory}, err // GOMAXPROCS respects a container's quota
}

// machineMemory returns the memory of the machine, or the limit of the container in which
// this process runs.
func machineMemory() (int64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("detect the machine's memory: %w", err)
	}
	_, rest, _ := strings.Cut(string(data), "MemTotal:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	kilobytes, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("detect the machine's memory: %w", err)
	}
	total := kilobytes << 10
	if limit, ok := containerMemory("/sys/fs/cgroup/memory.max"); ok {
		return min(total, limit), nil
	}
	return total, nil
}

// containerMemory reads the limit of the root cgroup as seen in a container.
func containerMemory(file string) (int64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return limit, err == nil // "max" is not a number
}
