"""Fails with PyTorch's error message unless it can compute on the GPU of this job: programs that find
no GPU would compute on CPUs for days, or fail only after loading their weights."""
import sys

import torch

try:
    if not torch.cuda.is_available():
        torch.zeros(1).cuda()  # raises the reason
    torch.ones(8, device="cuda").sum().item()  # fails without kernels for this GPU
except Exception as e:  # torch raises many kinds of exceptions
    sys.exit(f"{type(e).__name__}: {e}")
print("GPU:", torch.cuda.get_device_name(), flush=True)
