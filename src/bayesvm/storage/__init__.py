"""Storage: convert models to plain state (names, numbers, arrays), validate it against schemas, and convert it back."""
