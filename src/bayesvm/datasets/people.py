"""Datasets: people, a synthetic table with text, missing values, an id and the exact probability of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit


@dataclass(frozen=True)
class People:
    """Columns by name, the class of each row, and its P(high)."""

    columns: dict[str, npt.NDArray[Any]]  # missing text is None, missing numbers are NaN
    income: npt.NDArray[Any]  # "average" or "high"
    probability: npt.NDArray[np.float64]


def people(n_rows: int, random_state: int | None = None) -> People:
    """Generate people with average or high income: eight columns of numbers, text and booleans, and an id.

    ``occupation`` has frequent and rare categories, and is missing at random. ``commute`` (minutes) is missing for
    people who work at home, so its absence is informative. The class is drawn with a probability that is a function of
    the row, including missing values: in expectation, no model is better than this probability.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    random_state : int or None
        Seed; use another seed for test rows.

    Returns
    -------
    People
        An object with ``columns``, a dict of arrays by name, ``income``, "average" or "high" for each row, and
        ``probability``, the true P(high).

    See Also
    --------
    bayesvm.workflow.TableModel : Learns from such tables.
    waveform : Numbers only.

    Examples
    --------
    >>> from bayesvm.datasets import people
    >>> data = people(1000, random_state=0)
    >>> list(data.columns)
    ['id', 'age', 'education', 'occupation', 'sector', 'married', 'hours', 'children', 'commute']
    """
    rng = np.random.default_rng(random_state)
    age = rng.triangular(18, 38, 80, n_rows).round()
    education = rng.choice(len(EDUCATIONS), n_rows, p=[0.12, 0.38, 0.28, 0.16, 0.06])
    occupation = rng.choice(len(OCCUPATIONS), n_rows, p=_SHARES)
    sector = rng.choice(3, n_rows, p=[0.68, 0.2, 0.12])
    married = rng.random(n_rows) < expit((age - 32) / 6)
    hours = np.clip(rng.normal(38, 9, n_rows) + 6 * (sector == 2), 5, 80).round(1)
    children = rng.poisson(np.where(married, 1.4, 0.3))
    commute = rng.lognormal(3.2, 0.6, n_rows).round()
    commute[rng.random(n_rows) < np.where(education >= 3, 0.3, 0.08)] = np.nan
    unsaid = rng.random(n_rows) < 0.06
    said = np.array([*OCCUPATIONS, None], object)
    at_home = np.isnan(commute)
    score = (
        -2.6
        + 0.9 * education
        - ((age - 52) / 17) ** 2
        + np.where(unsaid, 0.0, _WORTH[occupation])
        + np.where(sector == 2, 0.09, 0.05) * (hours - 38)
        + 0.7 * married
        + np.where(at_home, 0.6, 0.15 * np.sin(np.nan_to_num(commute) / 10))
    )
    probability = expit(1.4 * score)
    columns = {
        "id": np.array([f"p{number:07d}" for number in range(n_rows)], object),
        "age": age.astype(np.int64),
        "education": np.array(EDUCATIONS, object)[education],
        "occupation": said[np.where(unsaid, len(OCCUPATIONS), occupation)],
        "sector": np.array(["private", "public", "own business"], object)[sector],
        "married": married,
        "hours": hours,
        "children": children.astype(np.int64),
        "commute": commute,
    }
    high = rng.random(n_rows) < probability
    return People(columns, np.where(high, "high", "average").astype(object), probability)


EDUCATIONS = ("none", "school", "college", "bachelor", "master")
# Share of the people, and effect on the score; the last ones are rare.
OCCUPATIONS = {
    "sales": (0.2, 0.1),
    "office": (0.18, -0.2),
    "care": (0.14, -0.5),
    "craft": (0.13, 0.2),
    "teaching": (0.1, 0.0),
    "driving": (0.08, -0.4),
    "software": (0.07, 1.4),
    "cooking": (0.05, -0.9),
    "medicine": (0.03, 1.8),
    "law": (0.018, 1.6),
    "lighthouse keeping": (0.0008, -0.6),
    "falconry": (0.0007, -0.6),
    "bell founding": (0.0005, -0.6),
}
_SHARES = np.array([share for share, _ in OCCUPATIONS.values()])
_SHARES /= _SHARES.sum()
_WORTH = np.array([worth for _, worth in OCCUPATIONS.values()])
