"""Competitors: classifiers that scikit-learn does not have, to set ours against."""
