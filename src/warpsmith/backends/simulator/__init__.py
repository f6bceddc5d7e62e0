"""Kernels thread by thread, without a GPU: IR or PTX, every access checked."""
