"""A table larger than memory
==========================

The table is in files and is read in passes; only a random sample of rows and some matrices are in memory. The files
of this example are small, but the same code works for a thousand times as many rows.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bayesvm import BayesianSVC, open_table
from bayesvm.datasets import waveform
from bayesvm.inspection import ElboTraceDisplay

folder = Path(tempfile.mkdtemp())
for number in range(4):
    part = waveform(5_000, random_state=number)
    columns = {f"x{j}": column for j, column in enumerate(part.X.T)}
    parquet.write_table(pa.table(columns | {"y": part.y}), folder / f"part-{number}.parquet")

# %%
# The files are one table. ``fit`` takes it instead of X and y, since it contains the labels. With ``checkpoint=``, an
# interrupted fit resumes where it stopped.
table = open_table(str(folder / "*.parquet"), target="y")
print(f"{table.n_rows:,} rows of {table.n_features} features in {len(list(folder.iterdir()))} files")
model = BayesianSVC("rbf", n_inducing=100, tune=None, random_state=0).fit(table)
print(f"leave-one-out error {model.loo_error_:.3f} after {model.n_passes_:.1f} passes")
ElboTraceDisplay.from_estimator(model, n_rows=table.n_rows)

# %%
# Predictions are written to a file block by block.
model.predict_to(open_table(folder / "part-0.parquet", columns=list(table.names)), folder / "predictions.parquet")
predictions = parquet.read_table(folder / "predictions.parquet")
print(", ".join(predictions.column_names))
print(np.round(predictions["probability_1"].to_numpy()[:5], 3))
