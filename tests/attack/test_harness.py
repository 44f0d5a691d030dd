"""A handful of every attack, and the page that `make attack` writes."""

import os
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.attack.__main__ import BEGIN, END, KINDS, PAGE, ROOT, attacked, attacked_apart, figures, table, written
from tests.attack.outcome import Outcome

pytestmark = pytest.mark.slow


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes to kill here")
@pytest.mark.parametrize("name", KINDS)
def test_a_few_attacks_break_no_guarantee(name):
    pytest.importorskip(f"tests.attack.{name}")
    if name == "workers":
        pytest.importorskip("distributed")
    found = attacked_apart(name, KINDS[name].quick, 0)[0]
    assert found.failures == []
    assert set(found.counts) <= KINDS[name].harmless
    assert found.counts.total() == KINDS[name].quick


def test_broken_guarantees_are_detected(monkeypatch):
    counts = {"bit-identical": 3, "different bits": 1, "never": 0}
    module = SimpleNamespace(attack=lambda count, seed: counts)
    monkeypatch.setattr("tests.attack.__main__.import_module", lambda _: module)
    assert attacked("kills", 4, 0) == Outcome(
        Counter({"bit-identical": 3, "different bits": 1}), ["different bits (1×)"]
    )
    module.attack = lambda count, seed: (counts, ["seed 7"])
    assert attacked("kills", 4, 0).failures == ["seed 7"]

    def stop(count, seed):
        raise AssertionError("file 3")

    module.attack = stop
    assert attacked("kills", 4, 0) == Outcome(Counter({"failed": 1}), ["file 3"])


def test_a_process_that_dies_is_seen(monkeypatch):
    monkeypatch.setattr("tests.attack.__main__.sys.executable", "/bin/false")
    found = attacked_apart("kills", 1, 0)[0]
    assert found.counts == {"died": 1}
    assert "ended with 1" in found.failures[0]


def test_outcomes_add_up_and_travel():
    one = Outcome(Counter(read=2), ["a"])
    two = one + Outcome(Counter(read=1, rejected=1500), ["b"])
    assert Outcome.from_json(two.as_json()) == two
    assert figures(two) == "1,500 rejected, 3 read; **2 broken promises**"


def test_the_page_has_a_place_for_the_figures_and_every_guarantee():
    page = PAGE.read_text()
    again = written(page, table({"kills": Outcome(Counter({"bit-identical": 40}))}))
    assert again.partition(BEGIN)[0] == page.partition(BEGIN)[0]
    assert again.partition(END)[2] == page.partition(END)[2]
    assert "| 40 | 40 bit-identical |" in again
    for kind in KINDS.values():
        assert kind.promise in page
        assert all((ROOT / test).exists() for test in kind.tests)
