"""The training loop: batches, state, checkpoints, streams."""
