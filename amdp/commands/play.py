"""`amdp play`: one learner in one game, watched, recorded and summed up."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Annotated, Any, TextIO

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from amdp.commands.match import Match, Settings, arrange
from amdp.commands.refusals import INTERRUPTED, clear_errors, interruptible
from amdp.errors import InvalidInput
from amdp.losses.catalog import standard
from amdp.regret import Regret, measure, spaced
from amdp.seeding import Streams
from amdp.simulation import Round
from amdp.simulation import play as rounds_of

ADVERSARIES = ", ".join(standard())
SHOWN = 6  # checkpoints that fit a screen


def play(
    instance: Annotated[str, typer.Argument(help="A name of `amdp instances`, or a .npz or .json file.")],
    learner: Annotated[str, typer.Option(help="See `amdp learners`.")] = "ftpl",
    oracle: Annotated[str, typer.Option(help="See `amdp oracles`.")] = "dp",
    episodes: Annotated[int, typer.Option(help="How many rounds.")] = 10_000,
    losses: Annotated[str, typer.Option(help=f"{ADVERSARIES}; or a .csv, .parquet, .npz file.")] = "bernoulli",
    delay: Annotated[str, typer.Option(help="Such as none, fixed:50, uniform:0:100, geometric:20.")] = "none",
    seed: Annotated[int, typer.Option(help="The same seed, the same run.")] = 1,
    unknown: Annotated[bool, typer.Option("--unknown", help="The learner is not told the transitions.")] = False,
    radius: Annotated[str, typer.Option(help="With --unknown: paper; jin-2020, of UOB-REPS; luo-2021.")] = "paper",
    radius_scale: Annotated[float, typer.Option(help="With --unknown: scales the radius.")] = 1.0,
    multiplier: Annotated[float, typer.Option(help="Scales the rate that theory gives.")] = 1.0,
    projection: Annotated[str, typer.Option(help="newton or cvxpy, for learners that project.")] = "newton",
    record: Annotated[Path | None, typer.Option(help="Write the settings, then a JSON line a round.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Play a learner against an adversary, and measure its regret. Ctrl-C stops and sums up what was played.

    Example: amdp play river-swim --learner ftpl-shared --episodes 10000 --delay fixed:50 --seed 1
    """
    with clear_errors():
        chosen = instance, learner, oracle, episodes, losses, delay, seed, unknown, radius_scale, multiplier
        match = arrange(Settings(*chosen, projection, radius))
        began = perf_counter()
        with ExitStack() as stack:
            stream = stack.enter_context(_recording(record, match)) if record else None
            stop = stack.enter_context(interruptible())
            regret = measure(match.game, _watched(match, stop, stream))
            seconds = perf_counter() - began
    result = _summary(match, regret, seconds)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        _show(match, result)
    if stop.is_set():
        raise typer.Exit(INTERRUPTED)


@contextmanager
def _recording(file: Path, match: Match) -> Iterator[TextIO]:
    """The file, with the settings in its first line."""
    try:
        with file.open("w", encoding="utf-8") as stream:
            _write(stream, {"settings": match.used})
            yield stream
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be written: {problem}") from problem


def _watched(match: Match, stop: Event, stream: TextIO | None) -> Iterator[Round]:
    """The rounds, until they end or are asked to, each shown and written as it is played."""
    played = rounds_of(match.game, match.learner, match.domain, Streams.from_seed(match.settings.seed))
    paid = 0.0
    with _bar() as bar:
        task = bar.add_task(match.settings.learner, total=match.settings.episodes, paid=0.0)
        for one in played:
            if stream:
                _write(stream, _line(one))
            paid += one.paid
            bar.update(task, advance=1, paid=paid / (one.k + 1))
            yield one
            if stop.is_set():
                return


def _bar() -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("paid {task.fields[paid]:.3f} a round"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _line(one: Round) -> dict[str, Any]:
    return {
        "k": one.k,
        "states": one.segment.states.tolist(),
        "actions": one.segment.actions.tolist(),
        "paid": one.paid,
        "trials": one.trials,
    }


def _write(stream: TextIO, line: dict[str, Any]) -> None:
    """Flushed, so that a run that is killed loses at most its current round."""
    stream.write(json.dumps(line) + "\n")
    stream.flush()


def _summary(match: Match, regret: Regret, seconds: float) -> dict[str, Any]:
    played = int(regret.rounds[-1])
    bound = match.bound(played)
    at = spaced(played) - 1
    return {
        "rounds": played,
        "regret": float(regret.low[-1]),
        "bound": None if bound is None else asdict(bound) | {"total": bound.total},
        "seconds": seconds,
        "learner_seconds": float(regret.seconds[-1]),
        "oracle_calls": int(regret.oracle_calls[-1]),
        "trials": int(regret.trials[-1]),
        "settings": match.used,
        "curve": {
            "rounds": regret.rounds[at].tolist(),
            "paid": regret.paid[at].tolist(),
            "best": regret.best[at].tolist(),
            "regret": regret.low[at].tolist(),
        },
    }


def _show(match: Match, result: dict[str, Any]) -> None:
    console = Console()
    facts = Table(show_header=False, title=f"{match.settings.learner} on {match.settings.instance}")
    for key, value in result["settings"].items():
        facts.add_row(key, f"{value:.6g}" if isinstance(value, float) else str(value))
    facts.add_section()
    for key, text in _costs(result):
        facts.add_row(key, text)
    console.print(facts)
    console.print(_curve(result["curve"]))
    if result["rounds"] < match.settings.episodes:
        console.print(f"stopped after {result['rounds']} of {match.settings.episodes} rounds")


def _costs(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    each = result["learner_seconds"] / result["rounds"]
    yield "regret", f"{result['regret']:.6g}"
    yield "bound on its mean", _terms(result["bound"])
    yield "seconds", f"{result['seconds']:.2f}; the learner {result['learner_seconds']:.2f}, {each:.2e} an episode"
    yield "oracle calls", f"{result['oracle_calls']}, of which trials {result['trials']}"


def _terms(bound: dict[str, float] | None) -> str:
    if bound is None:
        return "none stated for this learner and what it is told"
    terms = " + ".join(f"{name} {value:.6g}" for name, value in bound.items() if name != "total")
    return f"{bound['total']:.6g} = {terms}"


def _curve(curve: dict[str, list[float]]) -> Table:
    table = Table("rounds", "paid", "best in hindsight", "regret", "regret / rounds")
    for i in np.unique(np.linspace(0, len(curve["rounds"]) - 1, SHOWN).round().astype(int)):
        rounds, paid, best, regret = (curve[key][i] for key in ("rounds", "paid", "best", "regret"))
        table.add_row(str(rounds), f"{paid:.6g}", f"{best:.6g}", f"{regret:.6g}", f"{regret / rounds:.4g}")
    return table
