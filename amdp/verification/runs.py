"""All checks, in the order of the paper, and how they are run: a check alone finds what it finds among all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from zlib import crc32

import numpy as np

from amdp.errors import InvalidInput
from amdp.text import suggestion
from amdp.verification import (
    adaptive_rates,
    delayed_feedback,
    estimates,
    games,
    infinite_horizon,
    known_transitions,
    parameters,
    regrets,
    scaled_resampling,
    soft_leader,
    stability_over_sets,
    stream_estimates,
    stream_stability,
    unknown_transitions,
)
from amdp.verification.base import Check, Effort, Finding, Parts

FAMILIES = (
    games,
    regrets,
    known_transitions,
    unknown_transitions,
    stability_over_sets,
    delayed_feedback,
    infinite_horizon,
    parameters,
    stream_estimates,
    stream_stability,
    estimates,
    scaled_resampling,
    soft_leader,
    adaptive_rates,
)


@dataclass(frozen=True)
class Verified:
    """A check, its finding, and how long it took."""

    check: Check
    finding: Finding
    seconds: float
    seed: int


def checks() -> list[Check]:
    """Whole games; then episodes over a kernel, over confidence sets, with delays; streams; estimators."""
    return [check for family in FAMILIES for check in vars(family).values() if isinstance(check, Check)]


def chosen(names: Sequence[str]) -> list[Check]:
    """The checks of these names; all if none is given."""
    known = {check.name: check for check in checks()}
    for name in names:
        if name not in known:
            raise InvalidInput(f"no check {name!r}; {suggestion(name, known)}known names: {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())


def false_alarm(wanted: Sequence[Check]) -> float:
    """A bound on the chance that one of these checks fails a right implementation: the sum of theirs."""
    return sum(check.false_alarm_rate for check in wanted)


def verify(wanted: Sequence[Check], effort: Effort, seed: int, parts: Parts | None = None) -> Iterator[Verified]:
    """Run the checks one by one, each with a generator of its own that depends on the seed and its name."""
    for check in wanted:
        rng = np.random.default_rng([seed, crc32(check.name.encode())])
        began = perf_counter()
        finding = check.run(parts or Parts(), effort, rng)
        yield Verified(check, finding, perf_counter() - began, seed)
