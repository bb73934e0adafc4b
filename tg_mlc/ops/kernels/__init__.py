"""Kernels of backends: loops over arrays, without autograd or choices of backends."""
