"""`amdp play`: one run of a learner in a game, its rounds recorded, its regret measured."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from threading import Event
from typing import Annotated, Any, TextIO

import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from amdp import own_code
from amdp.commands import completion
from amdp.commands.completion import option
from amdp.commands.loading import Spent, Stopwatch, stopwatch
from amdp.commands.screen import (
    AsJson,
    Screen,
    WorldSettings,
    clear_errors,
    gap_text,
    interruptible,
    leave,
    print_json,
    settings,
)
from amdp.errors import InvalidInput
from amdp.experiments.building import arrange
from amdp.experiments.settings import GameSettings, LearnerSettings, Named, RunSettings
from amdp.game.dynamic_regret import INTERVALS, best_sequences, even_edges, interval_costs
from amdp.game.games import OWN, radius_of, refuse_radius
from amdp.game.match import Match
from amdp.game.regret import Regret, log_checkpoints
from amdp.game.rounds import Round
from amdp.losses.by_name import standard

ADVERSARIES = ", ".join(standard())
DELAY = "Episodes until feedback arrives: none, fixed:50, uniform:0:100, geometric:20, and others."
EPISODES = 10_000
LEARNER = "ftpl"  # without any other
NO_DELAY = "none"
MAX_CHECKPOINTS = 6  # rows of the table of regrets
LABELS = {"told": "feedback"}  # words of the table for keys of JSON
UNPROVED = "unbounded"  # the upper end of a regret whose comparator is not bounded from below


def play(
    instance: Annotated[
        str,
        typer.Argument(
            help="A name of `amdp instances`, gym:FrozenLake-v1, my_module:my_world, or a .npz or .json file.",
            autocompletion=completion.instances,
        ),
    ],
    player: Annotated[
        str | None,
        typer.Argument(
            metavar="LEARNER",
            help="A name of `amdp learners`, or my_module:Mine; the same as --learner.",
            autocompletion=completion.learners,
        ),
    ] = None,
    learner: Annotated[str | None, option(completion.learners, f"The same; {LEARNER} without both.")] = None,
    oracle: Annotated[
        str | None,
        option(
            completion.oracles,
            "The learner's planning oracle, a name of `amdp oracles`; dp, lagrangian (budgets), auto (--steps).",
        ),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(help=f"Number of episodes; {EPISODES} without this and --steps.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Instead of episodes: steps of one infinite-horizon stream.")
    ] = None,
    losses: Annotated[
        str, option(completion.losses, f"The adversary: {ADVERSARIES}; my_module:mine; or a .csv, .parquet, .npz file.")
    ] = "bernoulli",
    delay: Annotated[str, option(completion.delays, DELAY)] = "none",
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 1,
    unknown: Annotated[bool, typer.Option("--unknown", help="The learner does not know the transitions.")] = False,
    radius: Annotated[
        str,
        typer.Option(help="With --unknown: confidence sets, own (the learner's), paper, jin-2020, luo-2021 or l1."),
    ] = OWN,
    radius_scale: Annotated[float, typer.Option(help="With --unknown: factor of the confidence radius.")] = 1.0,
    multiplier: Annotated[float, typer.Option(help="Factor of the learning rate, and of nothing else.")] = 1.0,
    projection: Annotated[
        str | None, option(completion.projections, "newton or cvxpy, for learners over occupancy measures.")
    ] = None,
    comparator: Annotated[
        str | None,
        option(
            completion.oracles,
            "The oracle that finds the best policy in hindsight; dp, auto with --steps, lagrangian within budgets.",
        ),
    ] = None,
    given: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE for the learner: see `amdp learners NAME`; repeatable.")
    ] = None,
    world: WorldSettings = None,
    changes: Annotated[
        int | None, typer.Option(min=0, help="Also the regret against the best sequence with up to so many changes.")
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Write JSON lines: the settings, then each round.")] = None,
    as_json: AsJson = False,
) -> None:
    """Play a learner against an adversary, and measure its regret. Ctrl-C stops and reports the rounds so far.

    Example: amdp play river-swim --learner ftpl-shared --episodes 10000 --delay fixed:50 --seed 1

    Example: amdp play tiny do-reps --losses switching --episodes 1000 --changes 8

    Example: amdp play gym:FrozenLake-v1 ftpl-adaptive --world map_name=8x8 --world n_steps=50 --episodes 1000

    Example: amdp play server-farm --world n_servers=3 --learner ftpl-infinite --steps 2000 --losses nominal
    """
    with clear_errors(), stopwatch() as clock:
        if not unknown:
            refuse_radius(radius, radius_scale)
        game = GameSettings(
            Named.by_name(instance, settings("--world", world or ())),
            Named.by_name(losses),
            EPISODES if episodes is None and steps is None else episodes,
            steps,
            delay,
            unknown=unknown,
            radius=radius,
            radius_scale=radius_scale,
            comparator=None if comparator is None else Named.by_name(comparator),
        )
        parts = [None if name is None else Named.by_name(name) for name in (oracle, projection)]
        name = _one_learner(player, learner)
        chosen = settings("--set", given or ())
        asked = RunSettings(
            game, LearnerSettings(name, parts[0], parts[1], multiplier, chosen, own_code.digest(name)), seed
        )
        match = arrange(asked).require_used()
        if changes is not None and steps is not None:
            raise InvalidInput("--changes: sequences of policies are compared with in episodes, not in a stream")
        if changes is not None and match.game.world.budgets is not None:
            raise InvalidInput("--changes: sequences of policies are not held to budgets")
        clock.begin()
        with ExitStack() as stack:
            stream = stack.enter_context(_recording(record, asked, match)) if record else None
            stop = stack.enter_context(interruptible())
            rounds = RecordedRounds(asked, match, stop, clock, stream)
            # In a stream each checkpoint is a hard problem: there only some are measured.
            at = None if steps is None else log_checkpoints(match.rounds, asked.checkpoints)
            regret = match.measure(rounds, at)
            spent = clock.read()
        result = _summary(rounds, regret, spent)
        if changes is not None and result["rounds"] == match.rounds:
            result["against_changes"] = _against(match, regret, changes)
    if as_json:
        print_json(result)
    else:
        _show(asked, match, result)
    leave(interrupted=stop.is_set())


def _one_learner(argument: str | None, option: str | None) -> str:
    if argument is not None and option is not None:
        raise InvalidInput(f"two learners, {argument} and --learner {option}; give one")
    return next((name for name in (argument, option) if name is not None), LEARNER)


def _settings(asked: RunSettings, match: Match) -> dict[str, Any]:
    return asked.to_json() | {"used": match.used}


@contextmanager
def _recording(file: Path, asked: RunSettings, match: Match) -> Iterator[TextIO]:
    """An open file that has the settings in its first line."""
    try:
        with file.open("w", encoding="utf-8") as stream:
            _write(stream, {"settings": _settings(asked, match)})
            yield stream
    except OSError as problem:
        raise InvalidInput(f"{file} cannot be written: {problem}") from problem


@dataclass
class RecordedRounds:
    """The rounds of a run, until the last one or `stop`; each is written to `stream` and shown in a progress bar."""

    asked: RunSettings
    match: Match
    stop: Event
    clock: Stopwatch
    stream: TextIO | None = None
    entering: list[int] = field(default_factory=list)  # steps of each round that belong to a switch of policies
    learner_loading: float = 0.0  # seconds of the learner in which machine code was loaded, as far as is known

    def __iter__(self) -> Iterator[Round]:
        loss, code = 0.0, 0.0
        with _bar() as bar:
            task = bar.add_task(self.asked.learner.name, total=self.match.rounds, loss=0.0)
            for record in self.match.play(self.asked.seed):
                if self.stream:
                    _write(self.stream, _line(record))
                loss += record.paid
                self.learner_loading += min(self.clock.code - code, record.seconds)
                code = self.clock.code
                self.entering.append(len(record.entering.states))
                bar.update(task, advance=1, loss=loss / (record.k + 1))
                yield record
                if self.stop.is_set():
                    return


def _bar() -> Progress:
    screen = Screen(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f} a round"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)


def _line(record: Round) -> dict[str, Any]:
    entering = {"entering": len(record.entering.states)} if len(record.entering.states) else {}
    return {
        "k": record.k,
        "states": record.segment.states.tolist(),
        "actions": record.segment.actions.tolist(),
        "paid": record.paid,
        "trials": record.trials,
    } | entering


def _write(stream: TextIO, line: dict[str, Any]) -> None:
    """Write and flush a line: a run that is killed loses at most its current round."""
    stream.write(json.dumps(line) + "\n")
    stream.flush()


def _summary(rounds: RecordedRounds, regret: Regret, spent: Spent) -> dict[str, Any]:
    played = int(regret.rounds[-1])
    bound = rounds.match.bound(played)
    at = np.searchsorted(regret.rounds, log_checkpoints(played))
    curve = {name: getattr(regret, name)[at].tolist() for name in ("rounds", "paid", "best")}
    curve |= {"regret": regret.low[at].tolist()}
    curve |= {"regret_high": [value if isfinite(value) else None for value in regret.high[at].tolist()]}
    return {
        "rounds": played,
        "regret": curve["regret"][-1],
        "regret_high": curve["regret_high"][-1],
        "bound": None if bound is None else asdict(bound) | {"total": bound.total},
        "no_bound": rounds.match.unproved(played) if bound is None else None,
        "seconds": spent.working + rounds.clock.code,
        "playing_seconds": spent.working,
        "loading_seconds": spent.loading,
        "learner_seconds": float(regret.learner_seconds[-1]),
        "learner_loading_seconds": rounds.learner_loading,
        "oracle_calls": int(regret.oracle_calls[-1]),
        "trials": int(regret.trials[-1]),
        "steps_entering": sum(rounds.entering[:played]),
        "paid_entering": float(regret.paid_entering[-1]),
        **_spending(rounds.match, regret),
        "settings": _settings(rounds.asked, rounds.match),
        "curve": curve,
    }


def _against(match: Match, regret: Regret, changes: int) -> list[float]:
    """The regret against sequences with at most 0, 1, ... changes, at the edges of equal intervals."""
    game = match.played
    edges = even_edges(game.rounds, max(INTERVALS, changes + 1))
    against: list[float] = (regret.paid[-1] - best_sequences(interval_costs(game, edges))).tolist()
    return against[: changes + 1]


def _spending(match: Match, regret: Regret) -> dict[str, Any]:
    """What the policies used of each budget on average, and the most that they may."""
    budgets = match.game.world.budgets
    if budgets is None:
        return {}
    each = zip(budgets.names, (regret.used[-1] / regret.rounds[-1]).tolist(), budgets.limits.tolist(), strict=True)
    return {"budgets": {name: {"use_a_round": use, "limit": limit} for name, use, limit in each}}


def _show(asked: RunSettings, match: Match, result: dict[str, Any]) -> None:
    screen = Screen()
    facts = Table(show_header=False, title=f"{asked.learner.name} on {asked.game.instance}")
    for key, value in _facts(asked, match):
        facts.add_row(key, f"{value:.6g}" if isinstance(value, float) else str(value))
    facts.add_section()
    for key, text in _costs(match, result):
        facts.add_row(key, text)
    screen.print(facts)
    screen.print(_curve(result["curve"]))
    if "against_changes" in result:
        table = Table("changes of the comparator", "regret", "regret / rounds")
        for count, against in enumerate(result["against_changes"]):
            table.add_row(str(count), f"{against:.6g}", f"{against / result['rounds']:.4g}")
        screen.print(table)
    if result["rounds"] < match.rounds:
        screen.print(f"stopped after {result['rounds']} of {match.rounds} rounds")


def _facts(asked: RunSettings, match: Match) -> Iterator[tuple[str, Any]]:
    """The settings, given or usual, then the parameters that the recipe made of them; none that changes nothing."""
    game, player = asked.game, asked.learner
    yield "learner", player.name
    yield from ((part, str(getattr(player, part) or name)) for part, name in match.solvers.items())
    yield "losses", game.losses
    yield ("episodes", game.episodes) if game.episodes else ("steps", game.steps)
    if game.unknown:
        yield "unknown", f"radius {radius_of(game.radius, player.name)} times {game.radius_scale:g}"
    if game.delay != NO_DELAY:
        yield from {"delay": game.delay, "total_delay": match.game.total_delay}.items()
    if game.comparator:
        yield "comparator", game.comparator
    if player.multiplier != 1.0:
        yield "multiplier", player.multiplier
    yield from {**player.settings, "seed": asked.seed}.items()
    said = ("total_delay", *match.solvers, *player.settings)
    used = {name: value for name, value in match.used.items() if name not in said}
    if match.rounds == game.length:  # said above
        del used["rounds"]
    yield from ((LABELS.get(name, name), value) for name, value in used.items())


def _costs(match: Match, result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    learner = result["learner_seconds"] - result["learner_loading_seconds"]
    each = f"the learner {learner:.3g}, or {learner / result['rounds']:.2g} a round"
    yield "regret", _interval(result["regret"], result["regret_high"])
    if result["regret_high"] is not None and not _is_exact(result["regret"], result["regret_high"]):
        yield "comparator's gap", gap_text(result["regret_high"] - result["regret"], result["curve"]["best"][-1])
    for name, budget in result.get("budgets", {}).items():
        exceeded = ": exceeded" if budget["use_a_round"] > budget["limit"] + 1e-6 * abs(budget["limit"]) else ""
        yield name, f"used {budget['use_a_round']:.6g} of {budget['limit']:g} a round, in expectation{exceeded}"
    yield "bound on its mean", result["no_bound"] or _terms(result["bound"])
    yield "playing", f"{result['playing_seconds']:.3g} seconds, {each}"
    yield "loading", f"{result['loading_seconds']:.3g} seconds: the world, the learner, machine code"
    if result["trials"]:
        yield "plans", f"{result['oracle_calls']}, of which {result['trials']} for resampling trials"
    elif result["oracle_calls"]:
        yield "plans", str(result["oracle_calls"])
    if result["steps_entering"]:
        yield "spent on switches", f"{result['steps_entering']} steps with a loss of {result['paid_entering']:.6g}"


def _is_exact(low: float, high: float) -> bool:
    """Whether the comparator is proved optimal up to rounding."""
    return high - low <= 1e-6 * max(1.0, abs(low))


def _interval(low: float, high: float | None) -> str:
    """One number if the comparator is proved optimal up to rounding, else both ends of the regret."""
    if high is None:
        return f"{low:.6g} .. {UNPROVED}"
    return f"{low:.6g}" if _is_exact(low, high) else f"{low:.6g} .. {high:.6g}"


def _terms(bound: dict[str, float]) -> str:
    terms = " + ".join(f"{name} {value:.6g}" for name, value in bound.items() if name != "total")
    return f"{bound['total']:.6g} = {terms}"


def _curve(curve: dict[str, list[Any]]) -> Table:
    table = Table("rounds", "loss", "best in hindsight", "regret", "regret / rounds")
    for i in np.unique(np.linspace(0, len(curve["rounds"]) - 1, MAX_CHECKPOINTS).round().astype(int)):
        rounds, loss, best, regret, high = (
            curve[key][i] for key in ("rounds", "paid", "best", "regret", "regret_high")
        )
        table.add_row(str(rounds), f"{loss:.6g}", f"{best:.6g}", _interval(regret, high), f"{regret / rounds:.4g}")
    return table
