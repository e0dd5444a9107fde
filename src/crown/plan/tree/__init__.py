"""One conjunction to one join tree: the passes and what they use."""
