package process

import (
	"fmt"
	"math/bits"
	"syscall"
	"unsafe"
)

// mostCPUs exceeds the number of CPUs of any machine.
const mostCPUs = 8192

type cpuMask [mostCPUs / 64]uint64

// AllowedCPUs returns the numbers of the CPUs on which this process can run.
func AllowedCPUs() ([]int, error) {
	var mask cpuMask
	n, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return nil, fmt.Errorf("get the CPU affinity of this process: %w", errno)
	}
	var cpus []int
	for i, word := range mask[:n/8] {
		for ; word != 0; word &= word - 1 {
			cpus = append(cpus, 64*i+bits.TrailingZeros64(word))
		}
	}
	return cpus, nil
}

// Pin restricts this thread, and the programs that it starts, to some CPUs.
func Pin(cpus []int) error {
	var mask cpuMask
	for _, cpu := range cpus {
		if cpu < 0 || cpu >= mostCPUs {
			return fmt.Errorf("there is no CPU %d", cpu)
		}
		mask[cpu/64] |= 1 << (cpu % 64)
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask))); errno != 0 {
		return fmt.Errorf("pin the programs to the CPUs %v: %w", cpus, errno)
	}
	return nil
}
