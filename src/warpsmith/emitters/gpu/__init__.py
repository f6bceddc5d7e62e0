"""Emitters for GPUs, one file each."""
