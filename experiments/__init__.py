"""Experiments: what is decided or claimed by numbers. They use the library as anyone would, and ship with nothing."""
