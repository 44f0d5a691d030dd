"""Tuning: recipes of our classifiers against each other and against peers, so that defaults are decided by numbers."""
