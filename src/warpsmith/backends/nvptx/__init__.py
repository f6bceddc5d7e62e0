"""NVIDIA's GPUs through LLVM: PTX, and with CUDA's own tools cubins and SASS."""
