"""The variants for GPUs: one file a lowering of some primitives."""
