"""Ends with PyTorch's words unless it can compute on the GPU of this job: programs that find none
compute on CPUs for days, or load their weights first."""
import sys

import torch

try:
    if not torch.cuda.is_available():
        torch.zeros(1).cuda()  # says why
    torch.ones(8, device="cuda").sum().item()  # fails without kernels for this GPU
except Exception as e:  # torch has an exception for each reason
    sys.exit(f"{type(e).__name__}: {e}")
print("GPU:", torch.cuda.get_device_name(), flush=True)
