package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app"
)

// detectTimeout bounds the run of nvidia-smi, which can hang on a broken driver.
const detectTimeout = 10 * time.Second

// GPUTrouble says what nvidia-smi reports beside the GPUs that work.
type GPUTrouble string

// Error implements error.
func (t GPUTrouble) Error() string { return "nvidia-smi " + string(t) }

// Detect finds out what this machine has. It gets the GPUs from the program
// nvidiaSMI; "" is the one on PATH, if any. With an error it still gives what it
// found, and with a GPUTrouble those that nvidia-smi lists although another is lost.
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
// them differently. Of one that is divided, it returns those of its instances (MIG).
func machineGPUs(nvidiaSMI string) ([]string, error) {
	if nvidiaSMI == "" {
		found, err := exec.LookPath("nvidia-smi")
		if err != nil {
			return nil, nil
		}
		nvidiaSMI = found
	}
	out, err := runNvidiaSMI(nvidiaSMI, "--query-gpu=index,uuid", "--format=csv,noheader")
	gpus, others := parseGPUs(out)
	if err != nil {
		others = append(others, err.Error())
	}
	if len(gpus) > 0 {
		list, _ := runNvidiaSMI(nvidiaSMI, "-L") // without it, none is divided
		gpus = divided(gpus, list)
	}
	if len(others) > 0 {
		return gpus, GPUTrouble("says: " + strings.Join(others, "; "))
	}
	return gpus, nil
}

// runNvidiaSMI runs nvidia-smi and returns what it prints, also where it fails.
func runNvidiaSMI(nvidiaSMI string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), detectTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, nvidiaSMI, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %v", detectTimeout)
	}
	return string(out), err
}

var (
	listedGPU      = regexp.MustCompile(`^GPU \d+: .*\(UUID: (GPU-[^)]+)\)`)
	listedInstance = regexp.MustCompile(`^\s+MIG .*\(UUID: (MIG-[^)]+)\)`)
)

// divided replaces GPUs by their instances, as nvidia-smi -L lists them below each.
func divided(gpus []string, list string) (all []string) {
	instances, of := map[string][]string{}, ""
	for line := range strings.Lines(list) {
		if gpu := listedGPU.FindStringSubmatch(line); gpu != nil {
			of = gpu[1]
		} else if instance := listedInstance.FindStringSubmatch(line); instance != nil {
			instances[of] = append(instances[of], instance[1])
		}
	}
	for _, gpu := range gpus {
		if own := instances[gpu]; len(own) > 0 {
			all = append(all, own...)
			continue
		}
		all = append(all, gpu)
	}
	return all
}

// GPUMemory returns the bytes of the smallest of these GPUs, which are named by index or UUID,
// as nvidiaSMI says; 0 if it does not.
func GPUMemory(nvidiaSMI string, gpus []string) (smallest int64) {
	if nvidiaSMI == "" {
		nvidiaSMI = "nvidia-smi"
	}
	out, _ := runNvidiaSMI(nvidiaSMI, "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits") // what it lists works
	for line := range strings.Lines(out) {
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

// parseGPUs reads lines such as "0, GPU-8f6c…", and returns the others, too.
func parseGPUs(csv string) (gpus, others []string) {
	for line := range strings.Lines(csv) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		_, uuid, found := strings.Cut(line, ",")
		uuid = strings.TrimSpace(uuid)
		if !found || !strings.HasPrefix(uuid, "GPU-") {
			others = append(others, line)
			continue
		}
		gpus = append(gpus, uuid)
	}
	return gpus, others
}
