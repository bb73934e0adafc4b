"""What the backends run: loops over arrays and what divides them among threads, without choices or autograd."""
