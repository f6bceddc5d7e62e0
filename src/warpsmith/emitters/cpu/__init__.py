"""Emitters for CPUs, one file each, under the names that `gpu/` uses."""
