"""Inference of the posterior, from any source of blocks. May import core and data."""
