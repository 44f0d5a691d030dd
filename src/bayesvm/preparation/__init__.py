"""Preparation: columns of any kind become numbers, by a recipe that is learned once and kept with the model."""

from bayesvm.preparation.learning import learn
from bayesvm.preparation.opening import Opened, open_files, prepared
from bayesvm.preparation.recipe import Recipe

__all__ = ["Opened", "Recipe", "learn", "open_files", "prepared"]
