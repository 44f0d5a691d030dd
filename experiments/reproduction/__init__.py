"""Reproduction: the paper's tables, figures and claims beside our measurements."""
