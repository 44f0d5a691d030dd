"""Scaling: the measurements behind docs/scaling.md, and the page itself. Run with `python -m benchmarks.scaling`."""
