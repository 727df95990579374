"""The estimates of a stream: their means given all that happened before the epoch, by going through all it may bring.

What the proofs of section 5 condition on is where the stream is, which policy it followed, and the law `p` of the next
one. Everything after that is enumerated: the way to the parking state, attempts, and the policy once it is entered.
"""

from collections.abc import Iterator
from itertools import product
from math import e, inf
from typing import Any, NamedTuple

import numpy as np

from amdp.algorithms.hedge import Mixture, list_policies
from amdp.algorithms.streams.epochs import hedge_infinite
from amdp.algorithms.streams.switching import Epoch, PolicySwitching
from amdp.algorithms.task import EpochSetup, Task
from amdp.arrays import Actions, Floats, one_hot
from amdp.model.chains import rows_of
from amdp.model.domains import StationaryPolicies
from amdp.model.segments import Place
from amdp.model.transitions import Kernel
from amdp.verification.base import Effort, Finding, Parts, check, equality_margin, judged
from amdp.verification.infinite_horizon import RHYTHM, plain_law

STEPS = 600
LIKELY = 0.9  # the chance of the policy that was followed before, if it is the likely one
LIMITS = (1.0, 5.0, 20.0, inf)  # of trials; without limit the counts have the means of Hedge's weights
ROUNDING = 1e-9


def followed(entry: PolicySwitching, place: Place, actions: Actions, stop: int) -> Floats:
    """The chance `[t, s]` of being at `s` in step `t` with the policy entered: all states of the procedure, forward."""
    rows, routes, states = rows_of(entry.kernel), entry.routes, np.arange(entry.kernel.shape[1])
    law = plain_law(entry, actions, stop + routes.length)
    home = np.where(states == routes.parked, routes.wait, entry.diameter.actions[routes.parked])
    start = np.eye(len(states))[place.state]
    kept = bool(entry.follows(place, one_hot(actions, entry.kernel.shape[2])[None])[0])
    going, following = start * (not kept), start * kept
    trying = np.zeros((routes.length + 1, len(states), len(states)))  # [steps to go, target, s]
    ways = rows[states, routes.actions]  # [target, steps to go - 1, s, y]
    accepts, on, back = routes.success / routes.arrival, rows[states, actions], rows[states, home]
    result = np.zeros((stop, len(states)))
    for t in range(place.time, stop):
        accepted = trying[0].diagonal() * accepts
        following, going = following + accepted, going + trying[0].sum(axis=0) - accepted
        if t + routes.length < stop:
            trying[-1][:, routes.parked] = going[routes.parked] * law[t + routes.length]
            going[routes.parked] = 0.0
        result[t] = following
        following, going = following @ on, going @ back
        trying[:-1] = np.einsum("lgs,glsy->lgy", trying[1:], ways)
        trying[-1] = 0.0
    return result


class Epochs(NamedTuple):
    """What an epoch may bring, from one place and for one law of policies; all `[t, s, a]`."""

    means: Floats  # of estimates of a loss of 1
    met: Floats  # chances of a visit with the policy entered
    entered: Floats  # what they should be: those of being there, times those of being entered
    there: Floats  # chances of being there, had each policy been followed from the start


def epochs_of(setup: EpochSetup, laws: int, rng: np.random.Generator) -> Iterator[Epochs]:
    """From every state after every policy, at the end of some epochs; the first epoch is like an episode."""
    entry, (_, states, actions) = setup.entry, setup.entry.kernel.shape
    every = list_policies(StationaryPolicies(entry.kernel, entry.initial))
    policies = one_hot(every.actions, actions)
    laws_of_all = np.stack([plain_law(entry, pi, 3 * setup.length) for pi in every.actions])
    for epoch, state, policy in product((1, 2), range(states), policies):
        place = Place(epoch * setup.length, state, policy)
        stop = place.time + setup.length
        now = np.stack([followed(entry, place, pi, stop)[place.time :] for pi in every.actions])
        there = laws_of_all[:, place.time : stop]
        over = now.sum(axis=2, keepdims=True)
        same = (policies == policy).all(axis=(1, 2))
        likely = LIKELY * same + (1.0 - LIKELY) / len(policies)
        for chances in (likely, *rng.dirichlet(np.ones(len(policies)), size=laws)):
            met, *rest = (np.einsum("n,nts,nsa->tsa", chances, x, policies) for x in (now, over * there, there))
            yield Epochs(met * _weights(setup, Mixture(every, chances), place, rng), met, *rest)


def _weights(setup: EpochSetup, mixture: Mixture, place: Place, rng: np.random.Generator) -> Floats:
    """The weight `[t, s, a]` of each pair in each step of the epoch."""
    learner: Any = setup.learner
    size, (_, states, actions) = setup.length, setup.entry.kernel.shape
    weights = np.empty((size, states, actions))
    for s, a in np.ndindex(states, actions):
        seen = Epoch(np.full(size, s), np.full(size, a), place.time, began=place)
        weights[:, s, a] = learner.estimator.weigh(mixture, seen, rng).values
    return weights


@check(
    statement="Theorem 8, Lemma 33: estimates of a stream given what came before the epoch",
    claim=(
        "E[estimate of (s, a) at t] = loss sum_pi p F_pi(t) mu_pi^t(s, a) / sum_pi p mu_pi^t(s, a) <= loss, "
        "F_pi(t) the chance that a switch to pi is over; an epoch leaves out at most SAH/(eL) + C, C a switch"
    ),
    exact="everything: all that may happen in an epoch is enumerated, from every state and after every policy",
    rejects={"kept-policies": ("mean", "formula"), "long-attempts": ("left_out",)},
    correction="the printed bound SAH/(eL) does not count the steps of a switch, which no estimate knows of",
)
def _stream_estimates(parts: Parts, effort: Effort, rng: np.random.Generator) -> Finding:
    task = Task(StationaryPolicies(Kernel.homogeneous(RHYTHM, STEPS)), STEPS)
    setup, drawn = parts.stream(task), effort.samples(1)
    worst = share = off = 0.0
    for epoch in epochs_of(setup, drawn, rng):
        worst = max(worst, float(epoch.means.max()))
        off = max(off, float(np.abs(epoch.met - epoch.entered).max()))
        for limit in LIMITS:
            left = float((epoch.there - epoch.met * (1.0 - (1.0 - epoch.there) ** limit)).sum())
            share = max(share, left / (epoch.there.size / (e * limit) + setup.entry.expected_length))
    kept = max(float(epoch.means.max()) for epoch in epochs_of(hedge_infinite(task), drawn, rng))
    text = (
        f"means of at most {worst:.3f} times the loss, in line with the formula to {off:.0e}; at most {share:.2f} of "
        f"what may be left out is; hedge-infinite, which follows a policy on, has means of up to {kept:.2f} times the "
        "loss"
    )
    margins = {"mean": 1.0 + ROUNDING - worst, "formula": equality_margin(off), "left_out": 1.0 - share}
    return judged(text, 0, margins, worst=worst, kept=kept, share=share)
