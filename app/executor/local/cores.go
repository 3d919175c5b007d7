package local

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"molrun/app/task/process"
)

// coresDir has a folder cpuN for each CPU of the machine.
const coresDir = "/sys/devices/system/cpu"

// Cores returns the CPUs, by core, to which tasks can be pinned that use so many in all. Of
// fewer, or where the machine gives this process only a part of their time, it returns none,
// and why.
func Cores(cpus int) (cores [][]int, why string) {
	allowed, err := process.AllowedCPUs()
	switch {
	case err != nil:
		return nil, err.Error()
	case cpus > len(allowed):
		return nil, fmt.Sprintf("runner.cpus is %d, and this machine gives the service %d", cpus, len(allowed))
	case runtime.GOMAXPROCS(0) < len(allowed):
		return nil, fmt.Sprintf("the service may use the time of %d CPUs, spread over %d", runtime.GOMAXPROCS(0), len(allowed))
	}
	return coresOf(allowed, coresDir), ""
}

// coresOf groups CPUs that are threads of one core. One whose core is not known is its own.
func coresOf(cpus []int, dir string) [][]int {
	var cores [][]int
	byCore := map[string]int{}
	for _, cpu := range cpus {
		data, err := os.ReadFile(fmt.Sprintf("%s/cpu%d/topology/thread_siblings_list", dir, cpu))
		siblings := strings.TrimSpace(string(data))
		if i, known := byCore[siblings]; known && err == nil {
			cores[i] = append(cores[i], cpu)
			continue
		}
		byCore[siblings] = len(cores)
		cores = append(cores, []int{cpu})
	}
	return slices.Clip(cores)
}
