"""Storage: the parts of models as plain state (names, numbers, arrays), what it must look like, and back."""
