"""One run: the training loop, its folder on disk, checkpoints, evaluation and progress."""
