"""Back ends: what kernels become.  One folder a target, with the same file names in each."""
