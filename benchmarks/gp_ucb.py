"""The recommended policy against a contextual Gaussian-process UCB of botorch.

    python -m venv gp && . gp/bin/activate
    pip install -r benchmarks/gp_ucb_requirements.txt && pip install -e .
    python -m benchmarks.gp_ucb [--seeds 20] [--kernel matern] [--beta 1 2]
        [--write docs/gp-ucb.md]

The environment is the benchmark's own: nothing else here needs torch, of which the build for the
CPU is enough. All run on one core and, seed by seed, on the same contexts and the same noise. The
rival is botorch's `SingleTaskGP` over context and decision with standardised payoffs and one of
the two kernels, with priors, that botorch ships; a run of some minutes is made for each `--kernel`
and `--beta`, and the best of them in hindsight counts.
"""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

import continuarm as ca
from continuarm.core.compiling import Array
from continuarm.lab.measures import ratio
from continuarm.table import Table

PROBLEM = "two-communities"
MARKS = (10, 30, 100, 300)  # the last is the horizon
RANDOM = 5  # decisions before the first fit
ALWAYS = 50  # up to here hyperparameters are fitted anew at each decision, then at every tenth
BETAS = (0.25, 0.5, 1.0, 2.0, 4.0)  # wide enough that the best is not at an end
KERNELS = {
    "rbf": "RBF",  # botorch's default, which does not learn the scale of the payoff
    "matern": "Matérn",  # its default before 0.12, kept for few dimensions and much noise
}
SIDE = 41  # decisions per dimension of the grid on which the bound is maximised


class GaussianProcessUCB:
    """UCB of a Gaussian process over (context, decision) in the unit cube.

    It decides for the point of a grid with the highest `mean + sqrt(beta) * deviation` at the
    context. Each decision is conditioned on all payoffs so far.
    """

    def __init__(
        self, context: ca.Box, decision: ca.Box, rng: Generator, kernel: str, beta: float
    ) -> None:
        self.context, self.decision, self.rng = context, decision, rng
        self.kernel, self.beta = kernel, beta
        axes = np.meshgrid(*[np.linspace(0.0, 1.0, SIDE)] * decision.dim, indexing="ij")
        self.grid = np.stack(axes, axis=-1).reshape(-1, decision.dim)
        self.points: list[Array] = []
        self.payoffs: list[float] = []
        self.model: Any = None

    def ask(self, context: Array) -> Array:
        """The decision with the highest upper confidence bound; the first ones are random."""
        x = self.context.to_unit(context)
        if len(self.payoffs) < RANDOM:
            y = self.rng.random(self.decision.dim)
        else:
            self._learn()
            candidates = np.hstack([np.tile(x, (len(self.grid), 1)), self.grid])
            y = self.grid[self._highest(candidates)]
        self.points.append(np.concatenate([x, y]))
        return self.decision.from_unit(y)

    def tell(self, decision: Array, payoff: float) -> None:
        """Learn the payoff of the decision asked for last."""
        self.payoffs.append(payoff)

    def _learn(self) -> None:
        import torch  # type: ignore[import-not-found]
        from botorch.fit import fit_gpytorch_mll  # type: ignore[import-not-found]
        from botorch.models import SingleTaskGP  # type: ignore[import-not-found]
        from gpytorch.mlls import ExactMarginalLogLikelihood  # type: ignore[import-not-found]

        n = len(self.payoffs)
        data = torch.tensor(np.array(self.points)), torch.tensor(self.payoffs).double()[:, None]
        if n <= ALWAYS or n % 10 == 0:
            self.model = SingleTaskGP(*data, **self._prior())
            fit_gpytorch_mll(ExactMarginalLogLikelihood(self.model.likelihood, self.model))
        else:
            self.model = SingleTaskGP(
                *data,
                likelihood=self.model.likelihood,
                mean_module=self.model.mean_module,
                covar_module=self.model.covar_module,
            )

    def _prior(self) -> dict[str, Any]:
        if self.kernel == "rbf":
            return {}
        from botorch.models.utils.gpytorch_modules import (  # type: ignore[import-not-found]
            get_gaussian_likelihood_with_gamma_prior,
            get_matern_kernel_with_gamma_prior,
        )

        dims = self.context.dim + self.decision.dim
        return {
            "covar_module": get_matern_kernel_with_gamma_prior(dims),
            "likelihood": get_gaussian_likelihood_with_gamma_prior(),
        }

    def _highest(self, candidates: Array) -> int:
        import torch
        from botorch.acquisition import (  # type: ignore[import-not-found]
            UpperConfidenceBound,
        )

        with torch.no_grad():
            bound = UpperConfidenceBound(self.model, beta=self.beta)
            return int(bound(torch.tensor(candidates)[:, None, :]).argmax())


def regrets_of(policy: Any, name: str, seeds: int) -> ca.Result:
    """Run a policy on the seeds that all contenders share."""
    result = ca.simulate(
        policy, PROBLEM, horizon=MARKS[-1], replications=seeds, rng=0, checkpoints=MARKS, workers=1
    )
    print(f"{name}: {result.seconds:.1f} s", file=sys.stderr)
    return result


def run(seeds: int, kernels: Sequence[str], betas: Sequence[float]) -> dict[str, ca.Result]:
    """Results by name, ours first."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)  # botorch draws new starting points only when a fit fails
    results = {"recommended": regrets_of("recommended", "recommended", seeds)}
    for kernel, beta in product(kernels, betas):
        name = f"GP-UCB, {KERNELS[kernel]}, beta = {beta:g}"
        results[name] = regrets_of(rival(kernel, beta), name, seeds)
    return results


def rival(kernel: str, beta: float) -> Callable[..., GaussianProcessUCB]:
    """What `simulate` makes the rival of each seed from."""

    def make(
        context: ca.Box, decision: ca.Box, horizon: int, rng: Generator
    ) -> GaussianProcessUCB:
        return GaussianProcessUCB(context, decision, rng, kernel, beta)

    return make


def final_table(results: dict[str, ca.Result]) -> Table:
    """Regret at the horizon, the ratio of ours to each rival's, and what a decision costs."""
    ours = next(iter(results.values())).regret[:, -1]
    rows = []
    for name, result in results.items():
        middle: float | None = None
        interval = ""
        if name != "recommended":
            middle, low, high = ratio(ours, result.regret[:, -1])
            interval = f"{low:.3f} to {high:.3f}"
        mean, error = float(result.mean[-1]), float(result.standard_error[-1])
        cost = 1000.0 / result.decisions_per_second
        rows.append((name, mean, error, middle, interval, float(f"{cost:.2g}")))
    columns = ("policy", f"regret at {MARKS[-1]}", "std error", "ours / rival", "95% interval")
    return Table.of((*columns, "ms per decision"), rows)


def growth_table(results: dict[str, ca.Result]) -> Table:
    """Mean regret on the way to the horizon."""
    rows = [(name, *result.mean.tolist()) for name, result in results.items()]
    return Table.of(("policy", *(f"at {mark}" for mark in MARKS)), rows)


def best_rival(results: dict[str, ca.Result]) -> str:
    """The rival with the least regret, chosen on the seeds of the comparison."""
    return min(list(results)[1:], key=lambda name: float(results[name].mean[-1]))


def page(results: dict[str, ca.Result], seeds: int, chosen: str) -> str:
    """The page of the docs; `chosen` are the options of the run."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("botorch", "gpytorch", "torch"))
    machine = f"{platform.machine()}, Python {platform.python_version()}, {libraries}"
    best = best_rival(results)
    middle, low, high = ratio(results["recommended"].regret[:, -1], results[best].regret[:, -1])
    return f"""# Against GP-UCB

This page is written by
`python -m benchmarks.gp_ucb {chosen} --write docs/gp-ucb.md`
({machine}),
in an environment of its own that the head of `benchmarks/gp_ucb.py` sets up.

`{PROBLEM}` (dx = 1, dy = 2, noise 0.1), {MARKS[-1]} decisions, {seeds} seeds. On each seed all
policies see the same contexts and the same noise. The recommended policy has nothing to tune.

The rival is botorch's `SingleTaskGP` over context and decision with standardised payoffs. It makes
{RANDOM} random decisions first. Its hyperparameters are then fitted by maximum marginal likelihood
with botorch's priors, at each decision up to {ALWAYS} payoffs and at every tenth later; each
decision is conditioned on all payoffs. It decides for the point of a grid of {SIDE} × {SIDE}
decisions with the highest `mean + sqrt(beta) * deviation`. RBF is botorch's default kernel, which
has a length for each dimension but no scale of the payoff to learn; Matérn is the scaled Matérn
5/2 kernel with gamma priors that was its default before version 0.12.

{final_table(results).markdown()}

The best rival in hindsight is {best}: the regret of the
recommended policy is {middle:.2f} times as large (95% interval {low:.2f} to {high:.2f}). Choosing
kernel and beta on the seeds of the comparison favours the rival. The ratio is one of mean regrets;
its interval is Student's over paired seeds. Times are those of one core.

Mean regret on the way:

{growth_table(results).markdown()}
"""


def main() -> None:
    """Compare, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="replications, at least 2")
    parser.add_argument("--kernel", choices=KERNELS, nargs="+", default=[*KERNELS])
    parser.add_argument("--beta", type=float, nargs="+", default=[*BETAS])
    parser.add_argument("--write", type=Path, help="a page of Markdown to write the tables to")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported
    results = run(options.seeds, options.kernel, options.beta)
    print(final_table(results), growth_table(results), sep="\n\n")
    print(f"\nbest rival in hindsight: {best_rival(results)}")
    if options.write is not None:
        betas = " ".join(f"{beta:g}" for beta in options.beta)
        chosen = f"--kernel {' '.join(options.kernel)} --beta {betas}"
        options.write.write_text(page(results, options.seeds, chosen))


if __name__ == "__main__":
    main()
