package local

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"molrun/app/task/process"
)

// coresDir contains a folder cpuN for each CPU of the machine.
const coresDir = "/sys/devices/system/cpu"

// Cores returns the CPUs, grouped by core, to which tasks using that many CPUs in all can
// be pinned. If the machine has fewer, or gives this process only part of their time, it
// returns none and the reason.
func Cores(cpus int) (cores [][]int, why string) {
	allowed, err := process.AllowedCPUs()
	switch {
	case err != nil:
		return nil, err.Error()
	case cpus > len(allowed):
		return nil, fmt.Sprintf("runner.cpus is %d, but the service can use only %d CPUs", cpus, len(allowed))
	case runtime.GOMAXPROCS(0) < len(allowed):
		return nil, fmt.Sprintf("the service is limited to the time of %d CPUs, spread over %d", runtime.GOMAXPROCS(0), len(allowed))
	}
	return coresOf(allowed, coresDir), ""
}

// coresOf groups CPUs that are threads of the same core. A CPU whose core is unknown
// forms its own group.
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
