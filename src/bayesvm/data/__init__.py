"""Where blocks of rows come from: memory, files, a cluster. May import core; knows nothing of inference."""
