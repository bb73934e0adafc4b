"""Kernels that backends run: loops over arrays, without choices or autograd."""
