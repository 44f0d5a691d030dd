"""Estimators: shared code of kernel models: kernels, inducing points, local models."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.utils import check_array

from bayesvm.core.features import InducingFeatures
from bayesvm.core.kernels import NAMED, Kernel, LengthScaled, with_broad_component
from bayesvm.estimators._attributes import FittedAttribute
from bayesvm.estimators.base import BaseBayesianModel
from bayesvm.estimators.effects import column_effects, column_relevance
from bayesvm.estimators.parameters import COMMON, one_of, whole
from bayesvm.inference import inducing
from bayesvm.inference.fitted import Fitted
from bayesvm.inference.kernel_model import KernelModel

AUTO_KERNELS = ("rbf", "laplacian")  # candidates of tuning


KERNEL = COMMON | {
    "n_inducing": whole(1, "auto", None),
    "max_inducing": whole(1),
    "scale": one_of("auto", "standard", "common", "quantile", None),
    "tune": one_of("auto", "loo", "elbo", None),
    "tune_interval": whole(1),
    "learn_inducing": one_of(True, False),
    "local": one_of("auto", True, False),
}


class KernelEstimator(BaseBayesianModel):
    """Kernels and inducing points, from the constructor parameters."""

    _feature_map = InducingFeatures
    _parameter_checks = KERNEL

    kernel_ = FittedAttribute(lambda fitted: _features(fitted).kernel)
    inducing_points_ = FittedAttribute(lambda fitted: fitted.first_scaler.inverse(_features(fitted).inducing_points))
    tuning_report_ = FittedAttribute(lambda fitted: fitted.report, needs="a fit that tunes, not tune=None")
    effects_ = FittedAttribute(column_effects, of_columns=True)
    relevance_ = FittedAttribute(column_relevance, of_columns=True, needs="a kernel with length-scales")

    kernel: Any
    n_inducing: Any
    max_inducing: int
    inducing: Any
    learn_inducing: bool
    local: Any
    tune: str | None

    def _model(self, n_features: int) -> KernelModel:
        wanted: Any = self.kernel
        names = AUTO_KERNELS if self.tune is not None and isinstance(wanted, str) and wanted == "auto" else (wanted,)
        kernels = {name if isinstance(name, str) else type(name).__name__: _kernel(name, n_features) for name in names}
        if isinstance(wanted, str) and self.tune in {"auto", "loo"}:
            kernels = {
                name: with_broad_component(kernel, n_features) if isinstance(kernel, LengthScaled) else kernel
                for name, kernel in kernels.items()
            }
        return KernelModel(
            kernels,
            self.n_inducing,
            self.max_inducing,
            self._inducing(n_features),
            self.learn_inducing,
            learn_relevance=isinstance(wanted, str) and wanted != "linear",
        )

    def _local(self) -> bool | str:
        tuned = {"auto"} if self.local == "auto" else {"auto", "loo"}
        if self.local is True and self.tune not in tuned:
            raise ValueError(
                f"local=True needs tune='auto' or 'loo', which learn the kernel of local models; got tune={self.tune!r}"
            )
        return self.local if self.tune in tuned else False

    def _inducing(self, n_features: int) -> Any:
        """The name of the method that chooses points, or the points themselves."""
        if isinstance(self.inducing, str):
            if self.inducing not in inducing.HOW:
                choices = ", ".join(map(repr, inducing.HOW))
                raise ValueError(f"inducing must be {choices} or an array of points; got {self.inducing!r}")
            return self.inducing
        points = check_array(self.inducing, dtype=np.float64, input_name="inducing")
        if points.shape[1] != n_features:
            raise ValueError(f"inducing has {points.shape[1]} columns, but X has {n_features}")
        _, first = np.unique(points, axis=0, return_index=True)
        return points[np.sort(first)]  # repeated points would only make the matrix singular


def _kernel(wanted: Any, n_features: int) -> Kernel:
    """The kernel for a name or an object."""
    if isinstance(wanted, Kernel):
        return copy.deepcopy(wanted)
    if not isinstance(wanted, str) or wanted not in NAMED:
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, NAMED))} or a kernel of bayesvm.kernels; got {wanted!r}"
        )
    return NAMED[wanted](n_features)


def _features(fitted: Fitted) -> InducingFeatures:
    features = fitted.member.features
    if not isinstance(features, InducingFeatures):
        raise TypeError("this model has no inducing points")
    return features
