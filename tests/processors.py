"""Runs the tests with the arithmetic of several x86 processors: `make test-processors`.

OpenBLAS, NumPy and the C library choose their code by what the processor can do, and each choice rounds differently.
Environment variables make them choose as on another processor; what this one lacks is skipped. Arguments go to pytest.
"""

import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np

WITHOUT_FMA = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"  # in new and old versions


@dataclass(frozen=True)
class Processor:
    """What OpenBLAS calls it, what this processor must have for it, and NumPy's features that it lacks."""

    name: str
    needs: frozenset[str]  # any one of them: NumPy 2.4 has other names
    lacks: tuple[str, ...] = ()  # how their names begin
    tunables: str = ""


AVX512 = ("AVX512", "X86_V4")
AVX2 = ("AVX2", "FMA3", "X86_V3")
PROCESSORS = [
    Processor("SkylakeX", needs=frozenset({"AVX512_SKX", "X86_V4"})),
    Processor("Haswell", needs=frozenset({"AVX2", "X86_V3"}), lacks=AVX512),
    Processor("Sandybridge", needs=frozenset({"AVX", "X86_V3"}), lacks=AVX512 + AVX2, tunables=WITHOUT_FMA),
    Processor("Nehalem", needs=frozenset({"SSE42", "X86_V2"}), lacks=("",), tunables=WITHOUT_FMA),
]


def simd(kind):
    """Features that NumPy was built for ("baseline"), or of which it makes use as the processor has them ("found")."""
    return np.show_config(mode="dicts")["SIMD Extensions"].get(kind, [])


def environment(processor, optional):
    """NumPy warns of features that it does not know or that the processor lacks: only ``optional`` ones are named."""
    chosen = {"OPENBLAS_CORETYPE": processor.name}
    if lacking := [feature for feature in optional if feature.startswith(processor.lacks)]:
        chosen["NPY_DISABLE_CPU_FEATURES"] = " ".join(lacking)
    if processor.tunables:
        chosen["GLIBC_TUNABLES"] = processor.tunables
    return chosen


def why_skipped(processor, features):
    """Why the tests cannot run as on this processor; empty if they can."""
    if not processor.needs & set(features):
        return f"this processor has none of {', '.join(sorted(processor.needs))}"
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    if "DYNAMIC_ARCH" not in blas.get("openblas configuration", ""):
        return "NumPy was built without an OpenBLAS that chooses its code by the processor"
    return ""


def main(arguments):
    results = {}
    for processor in PROCESSORS:
        if reason := why_skipped(processor, simd("baseline") + simd("found")):
            results[processor.name] = f"skipped: {reason}"
            continue
        chosen = environment(processor, simd("found"))
        print(*(f"{name}={value!r}" for name, value in chosen.items()), flush=True)  # noqa: T201
        ran = subprocess.run([sys.executable, "-m", "pytest", *arguments], env=os.environ | chosen, check=False)  # noqa: S603
        results[processor.name] = "passed" if ran.returncode == 0 else f"failed: exit code {ran.returncode} of pytest"
    print("", *(f"{name:12} {result}" for name, result in results.items()), sep="\n")  # noqa: T201
    return int(any(result.startswith("failed") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
