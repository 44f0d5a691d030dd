"""Preparation: turn columns of any kind into numbers, with a recipe that is learned once and kept with the model."""

from bayesvm.preparation.frames import Frame
from bayesvm.preparation.learning import learn, learn_frame
from bayesvm.preparation.mixed import MixedTable, encoded_table, mixed_table, open_table
from bayesvm.preparation.opening import Opened, nearest, open_files, prepared
from bayesvm.preparation.recipe import Recipe

__all__ = [
    "Frame",
    "MixedTable",
    "Opened",
    "Recipe",
    "encoded_table",
    "learn",
    "learn_frame",
    "mixed_table",
    "nearest",
    "open_files",
    "open_table",
    "prepared",
]
