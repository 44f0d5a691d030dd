"""Versions of everything that results depend on, for bug reports."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version

import scipy.linalg  # noqa: F401  (loads the BLAS that is listed)
import sklearn.utils  # noqa: F401  (loads OpenMP)
from threadpoolctl import threadpool_info


def show_versions() -> None:
    """Print the versions of Python, bayesvm, its dependencies and their numerical libraries.

    Paste the output into a bug report. It contains no paths and no user names.

    See Also
    --------
    sklearn.show_versions : The same for scikit-learn.

    Examples
    --------
    >>> import bayesvm
    >>> bayesvm.show_versions()  # doctest: +ELLIPSIS
    System
      Python ...
    """
    required, optional = _dependencies()
    _print("System", _system())
    _print("Required", ((name, _version(name)) for name in ["bayesvm", *required]))
    _print("Optional", ((name, _version(name)) for name in optional))
    _print("Thread pools", _thread_pools())


def _print(title: str, lines: Iterable[tuple[str, str]]) -> None:
    rows = list(lines)
    width = max((len(name) for name, _ in rows), default=0)
    print("\n".join([title, *(f"  {name:{width}}  {value}" for name, value in rows)]))  # noqa: T201


def _system() -> list[tuple[str, str]]:
    return [
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("platform", platform.platform()),
        ("cores", str(os.cpu_count())),
    ]


def _dependencies() -> tuple[list[str], list[str]]:
    """Names of the packages that the base install requires, and of those that only extras require."""
    stated = requires("bayesvm") or []
    required = [_name(each) for each in stated if "extra ==" not in each]
    optional = sorted({_name(each) for each in stated if "extra ==" in each})
    return required, optional


def _name(requirement: str) -> str:
    """The name of the package in a requirement.

    >>> _name('dask[array,dataframe]>=2024.8; extra == "dask"')
    'dask'
    """
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _thread_pools() -> list[tuple[str, str]]:
    """One line per loaded BLAS and OpenMP library, which determine the last digits and the speed."""
    return [
        (
            pool["internal_api"],
            ", ".join(
                str(each)
                for each in (
                    pool["version"],
                    f"{pool['num_threads']} threads",
                    pool.get("architecture"),
                    pool.get("threading_layer"),
                )
                if each
            ),
        )
        for pool in threadpool_info()
    ]
