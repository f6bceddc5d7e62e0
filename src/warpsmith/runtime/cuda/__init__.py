"""Running kernels on a GPU of this computer."""
