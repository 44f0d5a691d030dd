"""The mathematics: NumPy and SciPy only, no data access, no scikit-learn."""
