"""The simulator: runs kernel IR over all threads in lockstep.  `run_kernel` and `watch_kernel` are the ways in."""

from warpsmith.simt.launch import run_kernel, watch_kernel

__all__ = ["run_kernel", "watch_kernel"]
