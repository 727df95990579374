"""How far the law of the perturbed leader moves from round to round, under noises of equal deviation."""

from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
from scipy import stats

from amdp.algorithms.estimators.feedback import Bandit
from amdp.algorithms.estimators.resampling import SharedResampling
from amdp.algorithms.ftpl.perturbations import Exponential, Gaussian, Gumbel, Laplace, Perturbation
from amdp.algorithms.ftpl.perturbed_leader import Ftpl, resampling_limit
from amdp.arrays import Actions, Floats
from amdp.model.domains import MarkovPolicies
from amdp.model.transitions import Kernel
from amdp.verification.worlds import leaders, occupancies

STEPS, STATES, ACTIONS = 3, 2, 2
WORLD = np.random.default_rng(7).dirichlet(np.ones(STATES), size=(STEPS, STATES, ACTIONS))  # 64 policies, from state 0
DRAWS = 1_000  # noise that stands for its law
NOISES: dict[str, tuple[type[Perturbation], float]] = {  # and its standard deviation at rate 1
    "laplace": (Laplace, sqrt(2.0)),
    "exponential": (Exponential, 1.0),
    "gumbel": (Gumbel, pi / sqrt(6.0)),
    "gaussian": (Gaussian, 1.0),
}
LAWS = {  # at rate 1, as they help an action
    "laplace": stats.laplace(),
    "exponential": stats.expon(),
    "gumbel": stats.gumbel_r(),
    "gaussian": stats.norm(),
}


@dataclass(frozen=True)
class Stability:
    """One game of FTPL in a world of 64 policies, whose laws `p_k` are followed on common noise."""

    noise: str
    deviation: float  # of the noise, in sqrt(HSAK)
    rounds: int
    seed: int
    draws: int = DRAWS

    @property
    def file(self) -> str:
        """Of its result."""
        return f"stability_{self.noise}_{self.deviation:g}_{self.rounds}_{self.seed}_{self.draws}.json"

    def measured(self) -> dict[str, float]:
        """Sums over the rounds: see `terms`."""
        rng = np.random.default_rng([self.seed, 7])
        kernel, (kind, unit) = Kernel(WORLD), NOISES[self.noise]
        domain = MarkovPolicies(kernel)
        spread = self.deviation * sqrt(STEPS * STATES * ACTIONS * self.rounds)
        learner = Ftpl(kind(unit / spread), SharedResampling(resampling_limit(domain, self.rounds)))
        means = rng.uniform(size=(2, STEPS, STATES, ACTIONS))
        half = np.repeat(means, -(-self.rounds // 2), axis=0)[: self.rounds]  # another law in the second half
        tables = (rng.random(half.shape) < half).astype(np.float64)
        common = learner.perturbation.perturbed(np.zeros(means[0].shape), self.draws, rng)
        distribution, chosen, told = learner.start(domain, rng), [], []
        for table in tables:
            chosen.append(leaders(WORLD, distribution.total + common))
            segment = kernel.walk(distribution.draw(rng), 0, rng.random((STEPS, 2)))
            after = learner.learn(
                distribution, Bandit.reveal(table, segment, learner.weigh(distribution, segment, rng))
            )
            told.append(after.total - distribution.total)
            distribution = after
        chosen.append(leaders(WORLD, distribution.total + common))
        return terms(WORLD, chosen, np.array(told), tables) | {"deviation": spread}


def terms(p: Floats, chosen: list[Actions], told: Floats, tables: Floats) -> dict[str, float]:
    """Of the leaders `[k + 1][n, h, s]` on common noise, the estimates and the losses, both `[k, h, s, a]`.

    movement: sum of `|p_k - p_{k+1}|_1` over the policies. stability: sum of `<q_k - q_{k+1}, lhat_k>`. squares: sum
    over k and pi of `p_k(pi) <mu_pi, lhat_k>^2`, which the strong stability bound multiplies with the rate.
    """
    every = np.array(np.unravel_index(np.arange(ACTIONS ** (STEPS * STATES)), (ACTIONS,) * (STEPS * STATES))).T
    visits = occupancies(p, every.reshape(-1, STEPS, STATES).astype(np.int32), 0)
    laws = np.array([_chances(one, len(every)) for one in chosen])
    estimated = np.einsum("nhsa,khsa->kn", visits, told)
    true = np.einsum("nhsa,khsa->kn", visits, tables)
    return {
        "regret": float((laws[:-1] * true).sum() - true.sum(axis=0).min()),
        "movement": float(np.abs(np.diff(laws, axis=0)).sum()),
        "stability": float(((laws[:-1] - laws[1:]) * estimated).sum()),
        "squares": float((laws[:-1] * estimated**2).sum()),
    }


def single_step_ratio(noise: str, chance: float, reach: float = 4.0) -> float:
    """The strong stability bound at one step: the decrease over `squares / deviation`, at its greatest.

    Two policies; only the second visits a certain pair, with `chance`, and it leads if its noise there exceeds a
    margin `m`. A small loss at that pair changes the law by `f(m)` of the loss and the value by `chance` of it; the
    square is `P(z > m) chance^2`. So the ratio is `f(m) / P(z > m) * deviation / chance`: the greatest hazard rate of
    noise of deviation 1, over the chance. Margins go up to `reach` deviations.
    """
    law: Any = LAWS[noise]
    margins = law.std() * np.linspace(0.0, reach, 4_001)
    return float((law.pdf(margins) / law.sf(margins)).max() * law.std() / chance)


def _chances(actions: Actions, policies: int) -> Floats:
    """How often each policy `[h, s]` leads, `[policies]`; the last state of the last step changes fastest."""
    digits = actions.reshape(len(actions), -1)
    codes = digits @ ACTIONS ** np.arange(digits.shape[1])[::-1]
    return np.bincount(codes, minlength=policies) / len(actions)
