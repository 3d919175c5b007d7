package results

import (
	"regexp"
	"strings"
)

// Lack is what a program had too little of.
type Lack string

// What a program can lack, as algorithm files say it.
const (
	LacksNothing   Lack = ""
	LacksMemory    Lack = "memory"     // of the machine
	LacksGPUMemory Lack = "gpu_memory" // which more of the machine's memory can't replace
)

var (
	// gpuMemory matches what CUDA, HIP and PyTorch say when the memory of a GPU is full.
	gpuMemory = regexp.MustCompile(`\b(?:CUDA|HIP|XPU)(?: error:)? out of memory\b|\btorch\.(?:cuda\.)?OutOfMemoryError\b|` +
		`\b(?:CUDA|HIP)_ERROR_OUT_OF_MEMORY\b|\bcudaErrorMemoryAllocation\b|\bCUBLAS_STATUS_ALLOC_FAILED\b`)
	// deviceMemory matches what JAX says of any device: if the job has no GPU, that is the machine.
	deviceMemory = regexp.MustCompile(`\bRESOURCE_EXHAUSTED: Out of memory\b`)
	// machineMemory matches what C++, Python, NumPy, PyTorch, R, Java, Go and the C library say
	// when they get no more memory, but not "cannot allocate memory in static TLS block".
	machineMemory = regexp.MustCompile(`(?m)\bstd::bad_alloc\b|(?:^|[\s._])(?:Array)?MemoryError\b|\bUnable to allocate [0-9.]+ .?i?B\b|` +
		`\bDefaultCPUAllocator: (?:can't|not enough)|(?i:\bcannot allocate (?:vector of size\b|memory(?:[^\w\s]|\s*$)))|` +
		`\bjava\.lang\.OutOfMemoryError\b|\bfatal error: runtime: out of memory\b`)
)

// How Python shows an error, and one that another error has led to.
const (
	traceback = "Traceback (most recent call last):"
	chained   = "above exception"
)

// afterLack is how many lines can follow the words for a lack of memory: XLA lists its largest
// buffers there. A program that has printed more has continued without.
const afterLack = 200

// FindLack returns what a failed program lacked by the end of its log: nothing if the program
// continued after it had said so. gpus says whether the job has GPUs.
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

// endsWith reports whether a log ends with words that match: no error of Python follows that
// has another cause, and not much else.
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

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
