"""The simulator: runs kernel IR over all threads in lockstep.  `run_kernel` is the way in."""

from warpsmith.simt.launch import run_kernel

__all__ = ["run_kernel"]
