"""Run checks one after the other, each with luck of its own, so that one alone finds what it finds among all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from time import perf_counter
from zlib import crc32

import numpy as np

from amdp.errors import InvalidInput
from amdp.verification.base import Check, Effort, Finding, Parts
from amdp.verification.catalog import checks


@dataclass(frozen=True)
class Verified:
    """A check and what came of it."""

    check: Check
    finding: Finding
    seconds: float


def chosen(names: Sequence[str]) -> list[Check]:
    """The checks of these names; all if none is given."""
    known = {check.name: check for check in checks()}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidInput(f"no check {name!r}{hint}; known names: {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())


def false_alarm(wanted: Sequence[Check]) -> float:
    """The chance, at most, that one of these checks fails a right implementation: the sum of theirs."""
    return sum(check.false_alarm.rate for check in wanted)


def verify(wanted: Sequence[Check], effort: Effort, seed: int, parts: Parts | None = None) -> Iterator[Verified]:
    """Each check with its finding, as soon as it is there."""
    for check in wanted:
        rng = np.random.default_rng([seed, crc32(check.name.encode())])
        began = perf_counter()
        found = check.run(parts or Parts(), effort, rng)
        yield Verified(check, found, perf_counter() - began)
