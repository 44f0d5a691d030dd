"""Plots are drawn without a screen, and none stays open."""

import pytest


@pytest.fixture(autouse=True)
def plt():
    pytest.importorskip("matplotlib").use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")


@pytest.fixture
def ax(plt):
    return plt.figure().subplots()
