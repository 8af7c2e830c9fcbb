"""Minima of functions by quasi-Newton, trust regions and least squares (pytorch-minimize), and under constraints by Lagrange's multipliers (cooper)."""

import cooper
import torch
import torchmin

from ..helpers import numbers


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


class Constrained(cooper.ConstrainedMinimizationProblem):
    """The least numbers whose sum is at least 1."""

    def __init__(self):
        super().__init__()
        self.sum = cooper.Constraint(
            constraint_type=cooper.ConstraintType.INEQUALITY, formulation_type=cooper.formulations.Lagrangian,
            multiplier=cooper.multipliers.DenseMultiplier(num_constraints=1),
        )  # fmt: skip

    def compute_cmp_state(self, w):
        state = cooper.ConstraintState(violation=(1 - w.sum())[None])
        return cooper.CMPState(loss=(w**2).sum(), observed_constraints={self.sum: state})


def run():
    result, start = {}, torch.tensor([0.5, 1.3, 0.7], dtype=torch.float64)
    for method in ("bfgs", "l-bfgs", "cg", "newton-cg", "trust-ncg", "trust-exact"):
        found = torchmin.minimize(rosenbrock, start, method=method, max_iter=25)
        result[method] = numbers(found.x, found.fun)
    fitted = torchmin.least_squares(lambda x: torch.stack([x[0] - 1, (x[1] - x[0] ** 2) * 2]), start[:2] * 0.5)
    w = torch.nn.Parameter(start[:2].clone())
    reached = torchmin.Minimizer([w], method="bfgs", max_iter=10).step(lambda: rosenbrock(w))
    problem, p = Constrained(), torch.nn.Parameter(torch.tensor([0.3, -0.2, 0.5]))
    both = cooper.optim.AlternatingDualPrimalOptimizer(
        problem, primal_optimizers=torch.optim.SGD([p], 0.05, momentum=0.7),
        dual_optimizers=torch.optim.SGD(problem.dual_parameters(), 0.1, maximize=True),
    )  # fmt: skip
    for _ in range(20):
        both.roll(compute_cmp_state_kwargs={"w": p})
    return {**result, "squares": numbers(fitted.x), "minimizer": numbers(reached, w), "constrained": numbers(p, *problem.dual_parameters())}
