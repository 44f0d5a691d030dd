"""Kernels as plain state and back; a class that is not part of bayesvm is imported only if it is trusted."""

import subprocess
import sys

import numpy as np
import pytest

from bayesvm.kernels import RBF, Constant, Laplacian, Linear, Matern, RationalQuadratic, Sum
from bayesvm.schema import MismatchError
from bayesvm.storage.kernels import KERNEL, UntrustedKernelError, classes_of, kernel_from, kernel_state
from tests.own_kernels import Cauchy, PowerExponential, kernel_classes

KERNELS = [
    RBF(2.0, 3.0),
    RBF(np.array([1.0, 2.0]), length_scale_bounds="fixed"),
    Matern(2.0, nu=0.5, variance_bounds=(0.1, 2.0)),
    RationalQuadratic(2.0, 3.0, 0.4, alpha_bounds="fixed"),
    Laplacian(np.array([1.0, 2.0]), 3.0, variance_bounds="fixed"),
    Linear(0.3),
    Constant(2.0),
    Sum([RBF() + Linear(), Constant()], [0.5, 2.0], weights_bounds="fixed"),
    Cauchy(np.array([1.0, 2.0]), variance_bounds=(0.5, np.inf)),
    2.0 * PowerExponential(2.0, power=0.7) + Linear(),
]
PATH = "tests.own_kernels.Cauchy"


def test_every_kernel_class_is_here():
    assert kernel_classes() <= {type(kernel) for kernel in KERNELS}


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_kernel_comes_back(kernel):
    state = kernel_state(kernel)
    KERNEL(state, "kernel", {})
    assert kernel_from(state, classes_of(kernel)) == kernel


def test_bounds_that_first_files_had_not():
    state = kernel_state(RBF() + RationalQuadratic())
    del state["weights_bounds"], state["sum"][1]["parameters"]["alpha_bounds"]
    KERNEL(state, "kernel", {})
    assert kernel_from(state) == RBF() + RationalQuadratic()


@pytest.mark.parametrize("trusted", [[PATH], {Cauchy}, PATH, (Linear, Cauchy)], ids=repr)
def test_a_class_is_trusted_by_path_or_by_itself(trusted):
    assert kernel_from(kernel_state(Cauchy(2.0)), trusted) == Cauchy(2.0)


@pytest.mark.parametrize("trusted", [(), ["tests.own_kernels"], [PowerExponential], ["Cauchy"]], ids=repr)
def test_what_is_not_trusted_is_named_with_its_place_and_the_remedy(trusted):
    state = kernel_state(RBF() + Cauchy(2.0))
    with pytest.raises(UntrustedKernelError) as caught:
        kernel_from(state, trusted, "features.kernel")
    assert "features.kernel.sum[1] is an instance of tests.own_kernels.Cauchy" in str(caught.value)
    assert f"bayesvm.load(path, trusted=['{PATH}'])" in str(caught.value)


def test_what_is_not_trusted_is_not_imported():
    code = (
        "import sys\n"
        "from bayesvm.storage.kernels import UntrustedKernelError, kernel_from\n"
        "try: kernel_from({'name': 'wave.Wave_read', 'parameters': {}})\n"
        "except UntrustedKernelError: print('wave' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert out.stdout.strip() == "False"


def test_what_is_trusted_must_be_a_kernel_that_is_there():
    for path in ("collections.OrderedDict", "math.sqrt"):
        with pytest.raises(TypeError, match=f"{path} is not a subclass of bayesvm.kernels.Kernel"):
            kernel_from({"name": path, "parameters": {}}, [path])
    for path in ("tests.own_kernels.Nothing", "no_such_package.Kernel"):
        with pytest.raises(ImportError):
            kernel_from({"name": path, "parameters": {}}, [path])


def test_a_class_that_cannot_be_imported_again_cannot_be_saved(monkeypatch):
    class Local(Cauchy):
        """Of this function."""

    in_script = type("Scripted", (Cauchy,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Scripted", in_script, raising=False)
    impostor = type("Cauchy", (RBF,), {"__module__": "tests.own_kernels"})
    for cls in (Local, in_script, impostor):
        with pytest.raises(TypeError, match=f"kernel {cls.__name__} cannot be saved because load could not import"):
            kernel_state(RBF() + cls())


@pytest.mark.parametrize(
    "state",
    [
        {"name": "Sigmoid", "parameters": {}},
        {"name": "RBF", "parameters": {"length_scale": 1.0}},
        {"name": "RBF", "parameters": {"length_scale": -1.0, "variance": 1.0}},
        {"name": "Matern", "parameters": {"length_scale": 1.0, "variance": 1.0, "nu": 0.7}},
        {"name": "RationalQuadratic", "parameters": {"length_scale": 1.0, "variance": 1.0, "alpha": [1.0, 2.0]}},
        {"name": PATH, "parameters": {"length_scale": {"deep": 1}}},
        {"name": PATH, "parameters": {"length_scale": np.array(["a"])}},
        {"sum": [], "weights": []},
    ],
    ids=repr,
)
def test_a_state_of_no_kernel_is_refused(state):
    with pytest.raises(MismatchError):
        KERNEL(state, "kernel", {})
