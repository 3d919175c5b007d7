package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app"
)

// detectTimeout bounds the run of nvidia-smi, which can hang on a broken driver.
const detectTimeout = 10 * time.Second

// Detect finds out what this machine has. It gets the GPUs from the program
// nvidiaSMI; "" is the one on PATH, if any. With an error it still gives what it
// found.
func Detect(nvidiaSMI string) (app.Capacity, error) {
	c := app.Capacity{CPUs: runtime.GOMAXPROCS(0)} // respects a container's quota
	memory, memoryErr := machineMemory()
	c.MemoryBytes = memory
	gpus, gpuErr := machineGPUs(nvidiaSMI)
	c.GPUs = gpus
	return c, errors.Join(memoryErr, gpuErr)
}

// machineMemory returns the memory of the machine, or of the container that this
// process runs in.
func machineMemory() (int64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("find out how much memory there is: %w", err)
	}
	_, rest, _ := strings.Cut(string(data), "MemTotal:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	kilobytes, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("find out how much memory there is: %w", err)
	}
	total := kilobytes << 10
	if limit, ok := containerMemory("/sys/fs/cgroup/memory.max"); ok {
		return min(total, limit), nil
	}
	return total, nil
}

// containerMemory reads the limit of the root cgroup that a container sees.
func containerMemory(file string) (int64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return limit, err == nil // "max" is no number
}

// machineGPUs returns the UUIDs of GPUs, because nvidia-smi and programs number
// them differently.
func machineGPUs(nvidiaSMI string) ([]string, error) {
	if nvidiaSMI == "" {
		found, err := exec.LookPath("nvidia-smi")
		if err != nil {
			return nil, nil
		}
		nvidiaSMI = found
	}
	ctx, cancel := context.WithTimeout(context.Background(), detectTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, nvidiaSMI, "--query-gpu=index,uuid", "--format=csv,noheader")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for GPUs: %w", nvidiaSMI, errors.Join(err, ctx.Err()))
	}
	return parseGPUs(string(out))
}

// GPUMemory returns the bytes of the smallest of these GPUs, which are named by index or UUID,
// as nvidiaSMI says; 0 if it does not.
func GPUMemory(nvidiaSMI string, gpus []string) (smallest int64) {
	if nvidiaSMI == "" {
		nvidiaSMI = "nvidia-smi"
	}
	ctx, cancel := context.WithTimeout(context.Background(), detectTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, nvidiaSMI, "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(line, ",")
		if len(fields) != 3 || !slices.Contains(gpus, strings.TrimSpace(fields[0])) && !slices.Contains(gpus, strings.TrimSpace(fields[1])) {
			continue
		}
		mebibytes, err := strconv.ParseInt(strings.TrimSpace(fields[2]), 10, 64)
		if err == nil && (smallest == 0 || mebibytes<<20 < smallest) {
			smallest = mebibytes << 20
		}
	}
	return smallest
}

// parseGPUs reads lines such as "0, GPU-8f6c…".
func parseGPUs(csv string) ([]string, error) {
	var gpus []string
	for line := range strings.Lines(csv) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		_, uuid, found := strings.Cut(line, ",")
		uuid = strings.TrimSpace(uuid)
		if !found || !strings.HasPrefix(uuid, "GPU-") {
			return nil, fmt.Errorf("ask nvidia-smi for GPUs: %q is no index and UUID", line)
		}
		gpus = append(gpus, uuid)
	}
	return gpus, nil
}
