"""Where blocks of rows come from. May import core; knows nothing of inference or scikit-learn."""
