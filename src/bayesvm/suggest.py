"""Hints in messages to the name that the user probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.7  # similarity of names from which one is suggested


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The most similar name, or all names if none is similar; ignores case.

    >>> did_you_mean("n_inducng", ["n_inducing", "noise"])
    "did you mean 'n_inducing'?"
    >>> did_you_mean("depth", ["noise", "kernel"])
    "there are 'kernel', 'noise'"
    """
    folded = {other.casefold(): other for other in names}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=ALIKE)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    return f"there are {', '.join(map(repr, sorted(folded.values())))}"
