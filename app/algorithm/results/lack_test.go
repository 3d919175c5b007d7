package results

import (
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestOutOfMemoryIsDetected(t *testing.T) {
	const torch = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB\n"
	const other = traceback + "\n  File \"run.py\", line 3, in <module>\nKeyError: 'A'\n"
	for _, tt := range []struct {
		name, log string
		want      Lack
	}{
		{"PyTorch", traceback + "\n" + torch, LacksGPUMemory},
		{"PyTorch before 2.1", "torch.cuda.OutOfMemoryError: CUDA out of memory.", LacksGPUMemory},
		{"PyTorch before 1.13", "RuntimeError: CUDA out of memory. Tried to allocate 12.22 GiB (GPU 0; 47.46 GiB total capacity)", LacksGPUMemory},
		{"ROCm", "torch.OutOfMemoryError: HIP out of memory.", LacksGPUMemory},
		{"the driver", "failed to allocate 17.18G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory", LacksGPUMemory},
		{"the runtime", "RuntimeError: CUDA error: out of memory", LacksGPUMemory},
		{"JAX", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 57664967912 bytes.\n" + strings.Repeat("Buffer\n", 150), LacksGPUMemory},
		{"C++", "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted\n", LacksMemory},
		{"Python", traceback + "\n  File \"run.py\", line 3, in <module>\nMemoryError\n", LacksMemory},
		{"NumPy", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64", LacksMemory},
		{"NumPy's words", "error: Unable to allocate 512. MiB for an array", LacksMemory},
		{"PyTorch without a GPU", "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.", LacksMemory},
		{"R", "Error: cannot allocate vector of size 74.5 Gb\nExecution halted\n", LacksMemory},
		{"the C library", "OSError: [Errno 12] Cannot allocate memory: '/x'\n", LacksMemory},
		{"the shell", "sh: 1: Cannot fork: Cannot allocate memory\nfailed\n", LacksMemory},
		{"Java", "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space", LacksMemory},
		{"an error that followed from it", torch + "\nDuring handling of the above exception, another exception occurred:\n\n" + other, LacksGPUMemory},
		{"both", "MemoryError\n" + torch, LacksGPUMemory},

		{"another error later", torch + "skipping a batch\n" + other, LacksNothing},
		{"much output later", torch + strings.Repeat("step\n", afterLack+1), LacksNothing},
		{"a library", "ImportError: libgomp.so.1: cannot allocate memory in static TLS block", LacksNothing},
		{"JAX, which tries again", "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB. The caller indicates that this is not a failure", LacksNothing},
		{"a name", "class NotEnoughMemoryErrors: pass", LacksNothing},
		{"nothing", "", LacksNothing},
	} {
		must.Equal(t, tt.name, FindLack(tt.log, true), tt.want)
	}
	must.Equal(t, "JAX without a GPU", FindLack("RESOURCE_EXHAUSTED: Out of memory allocating 8589934592 bytes.", false), LacksMemory)
	must.Equal(t, "PyTorch, of a GPU that was not reserved", FindLack(torch, false), LacksGPUMemory)
}
