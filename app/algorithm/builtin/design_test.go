package builtin

import (
	"strings"
	"testing"
)

// TestGPUFaultsAreToldApart gives the words of PyTorch and JAX to the types that design proteins or fold those.
func TestGPUFaultsAreToldApart(t *testing.T) {
	torch := map[string]string{
		"RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver":               "driver of this server's GPU is too old",
		"RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version":                                       "driver of this server's GPU is too old",
		"RuntimeError: CUDA error: no kernel image is available for execution on the device":                                           "compute capability",
		"UserWarning:\nNVIDIA H100 with CUDA capability sm_90 is not compatible with the current PyTorch installation.":                "compute capability",
		"AssertionError: Torch not compiled with CUDA enabled":                                                                         "PyTorch is one for CPUs",
		"RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver":         "found no GPU on this server",
		"RuntimeError: No CUDA GPUs are available":                                                                                     "found no GPU on this server",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB":                                                  "GPU's memory does not suffice",
		"RuntimeError: CUDA out of memory. Tried to allocate 12.22 GiB (GPU 0; 47.46 GiB total capacity; 37.08 GiB already allocated)": "GPU's memory does not suffice",
	}
	for typ, words := range map[string]map[string]string{"esmfold": torch} {
		a := catalogueType(typ, "")
		for said, want := range words {
			if got := a.Failures.Explain([]byte("Traceback (most recent call last):\n" + said + "\n")); !strings.Contains(got, want) {
				t.Errorf("%s: %q is told as %q, want %q", typ, said, got, want)
			}
		}
	}
}
