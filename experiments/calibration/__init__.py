"""Calibration: what docs/calibration.md shows, measured. Run with `make calibration`."""
