"""What the backends run: compiled loops over one part of the work, without tensors, choices or autograd."""
