"""The matrix: each check passes the library and fails the mistakes that it names, and each mistake is caught.

Nothing that a check judges is out of reach of all mistakes: every margin is exhausted by one of them.
"""

from functools import partial

import pytest

from amdp.model.confidence import BernsteinBox
from amdp.model.segments import Segment
from amdp.verification import Check, Effort, Parts, Verdict, checks
from amdp.verification.base import FALSE_ALARM
from amdp.verification.page import MISTAKES
from amdp.verification.runs import chosen, false_alarm, verify
from verification.mutations import MUTATIONS

PAIRS = [pytest.param(check, name, id=f"{check.name}-{name}") for check in checks() for name in check.rejects]

# The mistakes of a hostile reader, and one for each stage of the loop.
REQUIRED = {
    "weights-after-narrowing",
    "trials-from-state-0",
    "pessimism",
    "comparator-without-last-round",
    "bounds-cut",
    "narrowed-at-powers-of-two",
}
STAGES = {
    "draw": "fixed-noise",
    "play": "play-from-state-0",
    "weigh": "trials-from-state-0",
    "observe": "narrowed-at-powers-of-two",
    "learn": "estimates-doubled",
    "measure": "comparator-without-last-round",
}


# Checks whose mistakes all show with a quarter of the quick form's samples, and mistakes that need a certain share.
EASY = {
    "delayed-weights",
    "ftpl-gaps",
    "resampling-mean",
    "resampling-variance",
    "scaled-mean",
    "scaled-trials",
    "scaled-variance",
}
NEEDED = {
    ("game-delayed", "pessimism"): 1,
    ("game-known", "no-truncation"): 1,
    ("game-stream", "fixed-noise"): 1,
    ("game-stream", "trials-from-state-0"): 1,
    ("game-unknown", "pessimism"): 1,
    ("game-unknown", "weights-after-narrowing"): 1,
    ("scaled-mean", "coins-twice"): 4,
}


def shares(check: Check, mistake: str) -> tuple[int, ...]:
    """Of the samples of the quick form; all where sets must narrow in them, for which the library needs all too.

    In games, sets narrow within each game: a few games show whether they do.
    """
    if (check.name, mistake) in NEEDED:
        return (NEEDED[check.name, mistake],)
    if "narrowed" in check.rejects[mistake] and not check.name.startswith("game-"):
        return (1,)
    return (16, 4) if check.name in EASY else (16, 4, 1)


@pytest.mark.parametrize(("check", "mistake"), PAIRS)
def test_a_check_rejects_the_mistakes_that_it_names(
    check: Check, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sixteenth of the quick form's samples, or a quarter, or all: until the mistake shows.

    A check's chance of a false alarm is at most one in a million with any number of samples. So a mistake that it
    cannot see passes for rejected with a chance of at most three in a million.
    """
    parts = MUTATIONS[mistake](Parts(), monkeypatch)
    for share in shares(check, mistake):
        monkeypatch.setattr(Effort, "samples", staticmethod(partial(fewer, share)))
        [verified] = verify([check], Effort.QUICK, 1, parts)
        margins = {margin: verified.finding.margins[margin] for margin in check.rejects[mistake]}
        if max(margins.values()) < 0.0:
            break
    assert verified.finding.verdict is Verdict.FAILS
    assert max(margins.values()) < 0.0, verified.finding.text


def fewer(share: int, quick: int) -> int:
    """The samples of a share of the quick form."""
    return max(1, quick // share)


def test_every_mistake_is_caught_and_every_check_catches_one() -> None:
    caught = {name for check in checks() for name in check.rejects}
    assert caught == set(MUTATIONS) == set(MISTAKES)
    assert all(check.rejects for check in checks())
    assert caught >= REQUIRED | set(STAGES.values())


@pytest.mark.parametrize(("stage", "mistake"), STAGES.items())
def test_a_mistake_in_each_stage_of_the_loop_exhausts_the_margin_of_that_stage(stage: str, mistake: str) -> None:
    games = [check for check in checks() if check.name.startswith("game-")]
    assert any(stage in check.rejects.get(mistake, ()) for check in games)


class SeenBox(BernsteinBox):
    """A box that keeps whether one was narrowed."""

    seen = False

    def narrow(self, segment: Segment) -> "SeenBox":
        """As the box does."""
        type(self).seen = True
        return super().narrow(segment)


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
def test_the_library_passes_and_every_margin_can_be_exhausted(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    # False alarms: at most once in a million for each check that draws samples.
    SeenBox.seen = False
    monkeypatch.setattr(Effort, "samples", staticmethod(partial(fewer, 4 if check.name in EASY else 1)))
    [verified] = verify([check], Effort.QUICK, 2, Parts(box=SeenBox))
    finding = verified.finding
    assert finding.verdict is not Verdict.FAILS, finding.text
    assert set(finding.margins) == {margin for margins in check.rejects.values() for margin in margins}
    assert ("narrowed" in finding.margins) == SeenBox.seen  # whoever has sets sees that they narrow


FEW = [(check, share) for check in checks() for share in sorted({n for m in check.rejects for n in shares(check, m)})]


@pytest.mark.slow
@pytest.mark.parametrize(("check", "share"), FEW, ids=lambda one: getattr(one, "name", one))
def test_the_library_passes_with_as_few_samples_as_a_mistake_is_tried_with(
    check: Check, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a mistake could be rejected for want of samples; a false alarm is at most one in a million a check."""
    monkeypatch.setattr(Effort, "samples", staticmethod(partial(fewer, share)))
    [verified] = verify([check], Effort.QUICK, 1)
    few = {
        margin for mistake, margins in check.rejects.items() if share in shares(check, mistake) for margin in margins
    }
    assert all(verified.finding.margins[margin] >= 0.0 for margin in few), verified.finding.text


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 23))
def test_the_library_passes_twenty_seeds_in_a_row(seed: int) -> None:
    # One of the twenty fails with a chance of at most 5.8e-4: see the next test.
    failed = [
        result.check.name for result in verify(checks(), Effort.QUICK, seed) if result.finding.verdict is Verdict.FAILS
    ]
    assert failed == []


def test_the_chance_of_a_false_alarm_is_stated_for_each_check_and_for_all() -> None:
    for check in checks():
        assert bool(check.inequality) == bool(check.simulated)
        assert check.false_alarm_rate == (FALSE_ALARM if check.simulated else 0.0)
        assert check.claim
        assert check.statement
    assert false_alarm(checks()) <= 2.9e-5 + 1e-12


def test_a_check_alone_finds_what_it_finds_among_all() -> None:
    some = chosen(["noise-maximum", "nestedness"])
    shared = [result.finding for result in verify(some, Effort.QUICK, 5)]
    [alone] = verify(chosen(["nestedness"]), Effort.QUICK, 5)
    assert alone.finding == shared[1]
