"""Work in another process: answers, progress and exceptions come back, and what is not wanted any more ends."""

import os
from time import sleep

import pytest

from amdp.errors import InvalidInput
from amdp.oracles import subprocesses
from amdp.oracles.subprocesses import SubprocessEnded, Tell, run_in_subprocess


@pytest.fixture(autouse=True)
def no_one_idle() -> None:
    subprocesses.end_idle()


def doubled(number: int, tell: Tell) -> int:
    for i in range(number):
        tell(i)
    return 2 * number


def refuses(tell: Tell) -> None:
    raise InvalidInput("not like this")


def sleeps(tell: Tell) -> None:
    tell(os.getpid())
    sleep(1000.0)


def crashes(tell: Tell) -> None:
    os._exit(3)


def number_of(tell: Tell) -> int:
    return os.getpid()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_answers_and_what_is_told_come_back() -> None:
    told: list[int] = []
    assert run_in_subprocess(doubled, 3, tell=told.append) == 6
    assert told == [0, 1, 2]


def test_exceptions_come_back_and_end_the_process() -> None:
    before = run_in_subprocess(number_of)
    with pytest.raises(InvalidInput, match="not like this"):
        run_in_subprocess(refuses)
    assert not is_alive(before)
    assert run_in_subprocess(number_of) != before


def test_one_idle_process_is_kept_and_used_again() -> None:
    first = run_in_subprocess(number_of)
    assert first != os.getpid()
    assert run_in_subprocess(number_of) == first


@pytest.mark.parametrize("work", [crashes, sleeps])
def test_what_crashes_or_takes_too_long_has_ended(work: object) -> None:
    with pytest.raises(SubprocessEnded):
        run_in_subprocess(work, seconds=60.0 if work is crashes else 3.0)  # type: ignore[arg-type]


def test_a_ctrl_c_here_ends_what_runs_there() -> None:
    running: list[int] = []

    def interrupt(process: int) -> None:
        running.append(process)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_subprocess(sleeps, tell=interrupt)
    assert not is_alive(running[0])
    assert run_in_subprocess(doubled, 1) == 2
