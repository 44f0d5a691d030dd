"""BayesianSVR against other regressors: error, coverage, width and log density."""
