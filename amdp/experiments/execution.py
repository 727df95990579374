"""One run, from its settings to its record.

Its curve is the same on the same kind of processor with the same versions of numpy, scipy, numba and the solvers, but
for seconds; solvers with a limit of seconds may stop elsewhere.
"""

import json
import os
import platform
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from math import inf, isfinite
from pathlib import Path
from shutil import which
from subprocess import run as command
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amdp import own_code, registry
from amdp.errors import AmdpError
from amdp.experiments.building import arrange
from amdp.experiments.record import Curve, Failure, Record
from amdp.experiments.settings import RunSettings, canonical
from amdp.experiments.unfinished import UnfinishedRun
from amdp.game.blocks import Block
from amdp.game.compiled import CompiledGame
from amdp.game.match import Match
from amdp.game.regret import Measurement, Regret, log_checkpoints

VERSIONS = ("amdp", "numpy", "scipy", "numba", "highspy", "cvxpy", "pulp")

Ints = NDArray[np.int64]
Tick = Callable[[int, int], None]  # told how many rounds are played, and of how many


def execute(settings: RunSettings, tick: Tick | None = None, unfinished: Path | None = None) -> Record:
    """Play the run; whatever it raises is recorded, not raised. A long one is kept in a file while it is played."""
    began, worked, started = perf_counter(), process_time(), datetime.now(UTC)
    curve: Curve | None = None
    failure: Failure | None = None
    used: dict[str, Any] = {}
    try:
        match = arrange(settings)
        used = json.loads(canonical(match.used))
        at = log_checkpoints(match.rounds, settings.checkpoints)
        regret = _played(match, settings, at, tick, unfinished)
        budgets = match.game.world.budgets
        bounds = [_total(match.bound(int(rounds))) for rounds in regret.rounds]
        curve = Curve.of(regret, bounds, budgets.names if budgets else ())
    except Exception as problem:  # a run that fails must not end the others
        expected = isinstance(problem, AmdpError)
        failure = Failure(type(problem).__name__, str(problem), "" if expected else traceback.format_exc())
    seconds, cpu_seconds = perf_counter() - began, process_time() - worked
    return Record(settings, curve, failure, used, _made(settings, started, seconds, cpu_seconds))


def lost(settings: RunSettings, kind: str, message: str) -> Record:
    """The record of a run that left none."""
    return Record(settings, None, Failure(kind, message), {}, _made(settings, datetime.now(UTC), 0.0, 0.0))


def _made(settings: RunSettings, started: datetime, seconds: float, cpu_seconds: float) -> dict[str, Any]:
    return {
        "versions": versions_of(settings),
        "machine": platform.machine(),
        "repeatable": settings.repeatable,
        "git": git_revision(),
        "host": platform.node(),
        "python": platform.python_version(),
        "entropy": settings.seed,
        "started": started.isoformat(timespec="seconds"),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    }


def _played(match: Match, settings: RunSettings, at: Ints, tick: Tick | None, file: Path | None) -> Regret:
    """Play all rounds, or go on where a killed process was; the rounds that were played are reported to `tick`."""

    def begun() -> tuple[Iterator[Block], Measurement]:
        report = partial(_report, tick, match.rounds) if tick else None
        return match.blocks(settings.seed, report), match.measurement(at)

    game, measurement = begun()
    unfinished = None
    if file is not None and isinstance(game, CompiledGame):
        origin = {"run": settings.id, "versions": versions_of(settings), "sources": sources(), "machine": _processor()}
        unfinished = UnfinishedRun(file, origin)
        if not unfinished.take_up({"game": game, "measurement": measurement}):
            game, measurement = begun()
    for block in game:
        measurement.add(block)
        if unfinished and isinstance(game, CompiledGame):
            unfinished.keep({"game": game, "measurement": measurement})
    return measurement.regret


def _report(tick: Tick, total: int, played: int) -> None:
    tick(played, total)


def _total(bound: Any) -> float | None:
    total = inf if bound is None else float(bound.total)
    return total if isfinite(total) else None


@cache
def versions() -> dict[str, str]:
    """Of this package and those that decide results."""
    return {name: version(name) for name in VERSIONS}


def versions_of(settings: RunSettings) -> dict[str, str]:
    """The same, and that of gymnasium where the world is one of its tables."""
    is_table = settings.game.instance.name.startswith(f"{own_code.GYM}:") and not registry.missing(("gymnasium",))
    return versions() | ({"gymnasium": version("gymnasium")} if is_table else {})


@cache
def _processor() -> str:
    from llvmlite.binding import get_host_cpu_name

    return f"{platform.machine()} {get_host_cpu_name()}"


@cache
def sources() -> str:
    """A digest of this package: a state of a run is taken up only by the code that wrote it."""
    digest = sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def git_revision() -> str | None:
    """The commit of a source tree, marked if it has changes; None for an installed package."""
    folder = Path(__file__).parents[1]
    git = which("git")
    if git is None or not (folder.parent / ".git").exists():
        return None
    asked = command(
        [git, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
    )
    return asked.stdout.strip() or None
