"""Plan one conjunction as one join tree: the passes and what they use."""
