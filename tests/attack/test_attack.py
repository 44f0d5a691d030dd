"""Some of what ``make attack`` does at length."""

import pytest

from tests.attack import checkpoints, model_files


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_model_files_are_refused_or_load_with_the_same_values(seed):
    counts = model_files.attack(100, seed)
    assert counts[model_files.REFUSED] > 80
    assert sum(counts.values()) == 100


def test_checkpoints_are_refused_or_resumed_bit_identically():
    counts = checkpoints.attack(60, seed=1)
    assert counts[model_files.REFUSED] > 40
    assert sum(counts.values()) == 60


@pytest.mark.slow
def test_the_attack_is_the_same_for_a_seed():
    assert model_files.attack(15, seed=3) == model_files.attack(15, seed=3)
