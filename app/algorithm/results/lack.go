package results

import (
	"regexp"
	"strings"
)

// Lack is a resource that a program ran out of.
type Lack string

// Resources that a program can run out of, as named in algorithm files.
const (
	LacksNothing   Lack = ""
	LacksMemory    Lack = "memory"     // main memory
	LacksGPUMemory Lack = "gpu_memory" // cannot be replaced by main memory
)

var (
	// gpuMemory matches messages of CUDA, HIP and PyTorch about exhausted GPU memory.
	gpuMemory = regexp.MustCompile(`\b(?:CUDA|HIP|XPU)(?: error:)? out of memory\b|\btorch\.(?:cuda\.)?OutOfMemoryError\b|` +
		`\b(?:CUDA|HIP)_ERROR_OUT_OF_MEMORY\b|\bcudaErrorMemoryAllocation\b|\bCUBLAS_STATUS_ALLOC_FAILED\b`)
	// deviceMemory matches the message of JAX for any device. If the job has no GPU, the
	// message is about main memory.
	deviceMemory = regexp.MustCompile(`\bRESOURCE_EXHAUSTED: Out of memory\b`)
	// machineMemory matches out-of-memory messages of C++, Python, NumPy, PyTorch, R,
	// Java, Go and the C library, but not "cannot allocate memory in static TLS block".
	machineMemory = regexp.MustCompile(`(?m)\bstd::bad_alloc\b|(?:^|[\s._])(?:Array)?MemoryError\b|\bUnable to allocate [0-9.]+ .?i?B\b|` +
		`\bDefaultCPUAllocator: (?:can't|not enough)|(?i:\bcannot allocate (?:vector of size\b|memory(?:[^\w\s]|\s*$)))|` +
		`\bjava\.lang\.OutOfMemoryError\b|\bfatal error: runtime: out of memory\b`)
)

// How Python reports an error, and an error caused by another one.
const (
	traceback = "Traceback (most recent call last):"
	chained   = "above exception"
)

// afterLack is how many lines can follow an out-of-memory message: XLA lists its largest
// buffers there. A program that printed more than that had recovered.
const afterLack = 200

// FindLack returns the resource that a failed program ran out of, judging from the tail
// of its log. It returns LacksNothing if the program continued after the message. gpus
// says whether the job has GPUs.
func FindLack(logTail string, gpus bool) Lack {
	device := endsWith(deviceMemory, logTail)
	switch {
	case device && gpus, endsWith(gpuMemory, logTail):
		return LacksGPUMemory
	case device, endsWith(machineMemory, logTail):
		return LacksMemory
	}
	return LacksNothing
}

// endsWith reports whether a log ends with a match, which means that only a few lines
// follow it, and no Python error with another cause.
func endsWith(words *regexp.Regexp, logTail string) bool {
	all := words.FindAllStringIndex(logTail, -1)
	if len(all) == 0 {
		return false
	}
	rest := logTail[all[len(all)-1][1]:]
	if strings.Count(rest, "\n") > afterLack {
		return false
	}
	before, _, another := strings.Cut(rest, traceback)
	return !another || strings.Contains(lastLine(before), chained)
}

// lastLine returns the last nonblank line of text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
