"""The matrix: each check passes the library and fails the mistakes that it names, and each mistake is caught."""

import pytest

from amdp.verification import Check, Effort, Parts, Verdict, checks
from amdp.verification.base import NO_CHANCE
from amdp.verification.mutations import MUTATIONS, Mutation
from amdp.verification.runs import chosen, verify

BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}
PAIRS = [(check, BY_NAME[name]) for check in checks() for name in check.rejects]


@pytest.mark.parametrize(("check", "mutation"), PAIRS, ids=lambda one: one.name)
def test_a_check_rejects_the_mistakes_that_it_names(check: Check, mutation: Mutation) -> None:
    [verified] = verify([check], Effort.QUICK, 1, mutation.mutate(Parts()))
    assert verified.finding.verdict is Verdict.FAILS


def test_every_mistake_is_caught_and_every_check_catches_one() -> None:
    caught = {name for check in checks() for name in check.rejects}
    assert caught == set(BY_NAME)
    assert all(check.rejects for check in checks())


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
def test_the_library_passes(check: Check) -> None:
    # False alarms: once in a million for each check that draws samples.
    [verified] = verify([check], Effort.QUICK, 2)
    assert verified.finding.verdict is not Verdict.FAILS, verified.finding.text


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 23))
def test_the_library_passes_twenty_seeds_in_a_row(seed: int) -> None:
    failed = [one.check.name for one in verify(checks(), Effort.QUICK, seed) if one.finding.verdict is Verdict.FAILS]
    assert failed == []


def test_a_check_alone_finds_what_it_finds_among_all() -> None:
    some = chosen(["noise-maximum", "nestedness"])
    together = [one.finding for one in verify(some, Effort.QUICK, 5)]
    [alone] = verify(chosen(["nestedness"]), Effort.QUICK, 5)
    assert alone.finding == together[1]


def test_checks_that_draw_nothing_have_no_false_alarms_and_say_so() -> None:
    for check in checks():
        assert (check.false_alarm == NO_CHANCE) == (not check.simulated)
        assert check.claim
        assert check.statement
