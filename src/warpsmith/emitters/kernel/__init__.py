"""The frame of a kernel: its entry, its launch, its results."""
