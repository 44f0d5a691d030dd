"""How good the gradient of the leave-one-out loss is (D17): q held, sites held, and differences of refitted losses.

Run with ``python -m experiments.tuning.gradients``; the table is in docs/derivation.md.
"""

from functools import partial

import numpy as np

from bayesvm.core.features import InducingFeatures
from bayesvm.core.gradients import block_loss_gradient
from bayesvm.core.likelihoods import ExactHinge
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.inference import hyperparameters, judgements
from bayesvm.inference.families import KernelFamily
from bayesvm.kernels import RBF

STEP = 1e-3


def main():
    judgements.GOOD_ENOUGH, judgements.FIRST_UPDATES = 1e-14, 200  # differences need converged fits
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=200) > 0).astype(np.int32)
    with Workers(1) as workers:
        rows = judgements.Rows(MemorySource(X, y, None, ColumnScaler(), workers, 512), ExactHinge(), (1,), (0.3,))
        kernel, points = RBF([1.2, 1.5, 2.0, 3.0], 4.0), X[:30]
        family, theta = KernelFamily(kernel, points), kernel.log_parameters()

        def judged(at):
            return judgements.judge(rows, InducingFeatures.build(kernel.at(at), points))

        here = judged(theta)
        held = partial(
            block_loss_gradient,
            features=here.features,
            machines=here.learners(),
            likelihood=rows.likelihood,
            link=here.link,
            responses=None,
        )
        steps = STEP * np.eye(len(theta))
        gradients = {
            "finite differences, refitted": [
                (judged(theta + e).loo - judged(theta - e).loo) / (2 * STEP) for e in steps
            ],
            "q held": family.gradient(here.features, rows.source.reduce(held)) / len(y),
            "sites held": family.gradient(here.features, hyperparameters.loss_gradient(rows, here)) / len(y),
        }
    exact = np.array(gradients["finite differences, refitted"])
    for name, gradient in gradients.items():
        cosine = exact @ gradient / np.linalg.norm(exact) / np.linalg.norm(gradient)
        print(f"{name:<30} {np.round(gradient, 4)}  cosine {cosine:.2f}")


if __name__ == "__main__":
    main()
