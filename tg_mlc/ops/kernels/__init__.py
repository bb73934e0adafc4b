"""Kernels that backends run: loops over arrays, and their division among threads, without choices or autograd."""
