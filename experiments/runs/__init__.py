"""Runs: one fit measured, the store of what was measured, and the sweep that fills it."""
