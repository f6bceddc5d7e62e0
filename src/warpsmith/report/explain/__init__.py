"""Why kernels are as they are, and what they cost."""
