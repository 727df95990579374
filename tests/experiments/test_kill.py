"""Kill the runner and its workers at any moment: the results are those of a run that nobody disturbed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from amdp.experiments.execution import execute
from amdp.experiments.storage import Store
from experiments.specs import small, table, workers_of

RUNNER = """
import sys
from amdp.experiments.engines import LocalPool
from amdp.experiments.runner import run
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
outcome = run(Spec.parse(sys.argv[1]), Store(sys.argv[2]), LocalPool(2), attempts=100)
sys.exit(bool(outcome.failed or outcome.missing))
"""
SPEC = small(seeds=20, episodes=60)
PATIENCE = 120.0


class Undisturbed(NamedTuple):
    """What a run that nobody disturbs writes, and how long this machine takes for one of its games."""

    table: str
    seconds: float  # the median


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    seconds = []
    with Store(folder) as store:
        for one in SPEC.first():
            began = time.monotonic()
            store.write(execute(one.settings))
            seconds.append(time.monotonic() - began)
    return Undisturbed(table(SPEC, folder), median(seconds))


@contextmanager
def runner(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A runner in a process of its own; at the end it has ended, and so have its workers, soon."""
    with subprocess.Popen([sys.executable, "-c", RUNNER, SPEC.text, str(folder)]) as process:
        try:
            yield process
        finally:
            workers = workers_of(process.pid) if process.poll() is None else []
            process.kill()
            process.wait()
            wait_until(lambda: not any(map(alive, workers)))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "nothing happened for too long"
        time.sleep(0.01)


def wait_for_more(folder: Path, before: int, process: "subprocess.Popen[bytes]") -> None:
    wait_until(lambda: count(folder) > before or process.poll() is not None)


def count(folder: Path) -> int:
    return sum(1 for _ in folder.glob("runs/*/*.json"))


def kill_runner(folder: Path, game: float, dice: random.Random) -> None:
    """At any moment: as it starts, while it plays, as it writes; a game takes `game` seconds."""
    with runner(folder) as process:
        before = count(folder)
        if dice.random() < 0.7:
            wait_for_more(folder, before, process)
            time.sleep(dice.random() * 2 * game)
        else:
            time.sleep(dice.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()


def kill_workers(folder: Path, kills: int, game: float, dice: random.Random) -> int:
    """One after the other, whatever they are doing, in one runner that goes on; how many it were."""
    killed, before = 0, count(folder)
    with runner(folder) as process:
        while killed < kills and process.poll() is None:
            wait_for_more(folder, before, process)
            time.sleep(dice.random() * 2 * game)
            workers = workers_of(process.pid)
            if workers:
                os.kill(dice.choice(workers), signal.SIGKILL)
                killed, before = killed + 1, count(folder)
        assert process.wait(PATIENCE) == 0
    return killed


def disturbed(folder: Path, runner_kills: int, worker_kills: int, game: float, seed: int) -> int:
    dice = random.Random(seed)
    for _ in range(runner_kills):
        kill_runner(folder, game, dice)
    return runner_kills + kill_workers(folder, worker_kills, game, dice)


def check(folder: Path, undisturbed: str) -> None:
    assert table(SPEC, folder) == undisturbed
    assert count(folder) == len(SPEC.first())
    assert not list(folder.rglob("*.part"))
    assert not Store(folder).broken


def test_a_few_kills_change_nothing(tmp_path: Path, undisturbed: Undisturbed) -> None:
    assert disturbed(tmp_path, 1, 2, undisturbed.seconds, seed=1) == 3
    check(tmp_path, undisturbed.table)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_twenty_kills_change_nothing(tmp_path: Path, undisturbed: Undisturbed, seed: int) -> None:
    assert disturbed(tmp_path, 8, 12, undisturbed.seconds, seed) >= 16
    check(tmp_path, undisturbed.table)
