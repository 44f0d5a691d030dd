"""All tests keep BLAS to one thread: for matrices this small, waking more takes longer than the work."""

import pytest
from threadpoolctl import ThreadpoolController

import bayesvm.estimators  # noqa: F401  (loads every library whose threads are to be limited)


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    with ThreadpoolController().limit(limits=1):
        yield
