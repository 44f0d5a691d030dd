"""Sources of blocks of rows: memory, files or a cluster. May import core; does not depend on inference."""
