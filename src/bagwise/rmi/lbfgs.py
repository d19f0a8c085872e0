"""L-BFGS on RMI-SVM's objective: from a point of the stochastic solver to a local minimum."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from bagwise.rmi.problem import Iterate, Problem


def lbfgs(problem: Problem, start: Iterate, *, max_iter: int, tol: float) -> tuple[Iterate, int]:
    """Minimise from the given point, each binary problem on its own; also tell the most iterations.

    Warns where ``max_iter`` iterations were too few for a gradient below ``tol``.
    """
    end = Iterate(np.empty_like(start.coef), np.zeros_like(start.intercept), start.steps)
    iterations, unfinished = 1, 0
    for k in range(len(start.coef)):
        result = minimize(
            lambda w, k=k: problem.value_and_gradient(k, w),
            np.append(start.coef[k], start.intercept[k]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter, "gtol": tol},
        )
        end.coef[k], end.intercept[k] = result.x[:-1], result.x[-1]
        iterations = max(iterations, result.nit)
        unfinished += result.status == 1  # the limit of iterations or evaluations
    if unfinished:
        warnings.warn(
            f"L-BFGS did not converge in {max_iter} iterations ({unfinished} of {len(start.coef)} problems): "
            "increase max_iter, or tol, or lam",
            ConvergenceWarning,
            stacklevel=4,
        )
    return end, iterations
