"""The settings of `make test-processors` take effect, without a warning, or are skipped with a reason."""

import os
import subprocess
import sys
from itertools import pairwise

import pytest

from tests.pages import ROOT
from tests.processors import PROCESSORS, environment, simd, why_skipped

FEATURES = {
    "NumPy 2.4": ["X86_V3", "X86_V4", "AVX512_ICL"],
    "before": ["SSE42", "AVX", "FMA3", "AVX2", "AVX512F", "AVX512_SKX"],
}
IN_USE = """
import scipy.linalg
from threadpoolctl import threadpool_info
from tests.processors import simd
print(*{library["architecture"] for library in threadpool_info() if "architecture" in library})
print(*simd("found"))
"""


@pytest.mark.slow
@pytest.mark.skipif("NPY_DISABLE_CPU_FEATURES" in os.environ, reason="this run is itself as on another processor")
@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda processor: processor.name)
def test_the_libraries_choose_as_on_that_processor(processor):
    if reason := why_skipped(processor, simd("baseline") + simd("found")):
        pytest.skip(reason)
    chosen = environment(processor, simd("found"))
    command = [sys.executable, "-W", "error", "-c", IN_USE]
    ran = subprocess.run(command, env=os.environ | chosen, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
    core, features = ran.stdout.split("\n")[:2]
    assert core == processor.name
    assert set(features.split()) == set(simd("found")) - set(chosen.get("NPY_DISABLE_CPU_FEATURES", "").split())


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
def test_each_has_fewer_features_than_the_one_before(features):
    lacking = [environment(each, features).get("NPY_DISABLE_CPU_FEATURES", "").split() for each in PROCESSORS]
    assert lacking[0] == []
    assert all(set(few) <= set(more) for few, more in pairwise(lacking))
    assert set(lacking[1]) == {name for name in features if name.startswith(("AVX512", "X86_V4"))}
    assert lacking[-1] == features


def test_what_the_processor_lacks_is_skipped():
    skylake, haswell, *_ = PROCESSORS
    assert why_skipped(skylake, ["X86_V2", "X86_V3"]) == "this processor has none of AVX512_SKX, X86_V4"
    assert why_skipped(haswell, ["ASIMD", "NEON"]) == "this processor has none of AVX2, X86_V3"
