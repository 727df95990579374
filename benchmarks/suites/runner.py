"""The runner: what it costs over a bare loop, what a second worker brings, very many runs, and their report."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from amdp.experiments.engines import LocalPool
from amdp.experiments.execution import execute
from amdp.experiments.runner import run
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from amdp.report import write
from benchmarks.processes import run_fresh
from benchmarks.results import Goal, Row, at_least, at_most
from benchmarks.timing import Effort

Rows = Iterator[Row]

SPEC = """
title = "{seeds} seeds"
seeds = {seeds}
baseline = false
[[games]]
instance = "tiny"
episodes = {episodes}
[[learners]]
name = "ftpl-shared"
"""
SECOND = 125_000  # episodes that take about a second
MANY = """
import json, resource, sys, time
from pathlib import Path
from amdp.experiments.engines import LocalPool
from amdp.experiments.progress import Watcher
from amdp.experiments.runner import run
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store

class Memory(Watcher):
    seen = {}
    def show(self, tally):
        self.seen[tally.done * 10 // tally.all] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

spec, folder = Spec.parse(%r), %r
memory, began, worked = Memory(), time.perf_counter(), time.process_time()
run(spec, Store(folder), LocalPool(2), memory)
played, worked = time.perf_counter() - began, time.process_time() - worked
began = time.perf_counter()
run(spec, Store(folder), LocalPool(2))
found = time.perf_counter() - began
print(json.dumps({"played": played, "worked": worked, "found": found, "memory": memory.seen}))
"""


class Warm(LocalPool):
    """A pool whose workers are there and have compiled before the clock runs."""

    def __enter__(self) -> "Warm":
        return self

    def __exit__(self, *problem: object) -> None:
        pass

    @contextmanager
    def kept(self) -> Iterator["Warm"]:
        """Until the end of the context."""
        super().__enter__()
        try:
            first = _spec(1, 10).first()[0].settings
            for waiting in [self.submit(first, 0) for _ in range(self.capacity)]:
                waiting.result()
            yield self
        finally:
            super().__exit__()


def overhead(effort: Effort) -> Rows:
    """One worker against a bare loop in this process, in turn, the same runs."""
    spec = _spec(4, SECOND if effort.seconds else 20)
    settings = [one.settings for one in spec.first()]
    execute(settings[0])
    ours, bare, gaps = [], [], []
    with Warm(1).kept() as engine:
        for _ in range(5 if effort.seconds else 1):
            began = perf_counter()
            for one in settings:
                execute(one)
            bare.append((perf_counter() - began) / len(settings))
            seconds, inside = _played(spec, engine)
            ours.append(seconds / len(settings))
            gaps.append((seconds - inside) / inside)
    note = f"besides the runs themselves: {100 * median(gaps):.2g} % of their seconds"
    yield _as_much("a run of a second", "bare loop", median(ours), median(bare), "s", len(settings), 1.05, note)


def workers(effort: Effort) -> Rows:
    """The same runs with two workers and with one, in turn."""
    spec = _spec(8, SECOND if effort.seconds else 20)
    one: list[float] = []
    two: list[float] = []
    with Warm(1).kept() as single, Warm(2).kept() as double:
        for _ in range(3 if effort.seconds else 1):
            one.append(_played(spec, single)[0])
            two.append(_played(spec, double)[0])
    medians, ratio = (median(two), median(one)), median(one) / median(two)
    yield Row("two workers", "one worker", *medians, "s", {"runs": 8}, ratio, "theirs / ours", goal=at_least(1.8))


def many(effort: Effort) -> Rows:
    """Very many tiny runs by two workers, and the same call again, which finds them all."""
    runs = 10_000 if effort.seconds else 40
    with TemporaryDirectory() as folder:
        _, printed = run_fresh(MANY % (SPEC.format(seeds=runs, episodes=2), folder))
        files = [file.stat().st_size for file in Path(folder).glob("runs/*/*.json")]
    told = json.loads(printed)
    note = f"{1e3 * told['worked'] / runs:.2g} ms of the runner's processor a run; {sum(files) / 1e6:.0f} MB of files"
    yield Row("tiny runs, two workers", "a run", told["played"], told["played"] / runs, sizes={"runs": runs}, note=note)
    yield Row("all are there already", "a run", told["found"], told["found"] / runs, sizes={"runs": runs})
    early, late = (1024.0 * told["memory"][key] for key in (min(told["memory"], key=int), max(told["memory"], key=int)))
    yield _as_much("memory of the runner", "at the start", late, early, "B", runs, 1.1)


def report(effort: Effort) -> Rows:
    """Tables, figures in all formats and the page: 4 games, 10 learners, 25 seeds."""
    spec = Spec.parse(_many_learners(*((4, 10, 25) if effort.seconds else (1, 2, 5))))
    runs = len(spec.first())
    record = execute(spec.first()[0].settings)
    with TemporaryDirectory() as folder:
        store = Store(folder)
        for one in spec.first():
            store.write(replace(record, settings=one.settings))
        began = process_time()
        write(spec, store, Path(folder) / "report")
        seconds = process_time() - began
    yield Row("report", "a run", seconds, seconds / runs, sizes={"runs": runs}, goal=Goal("at most", 30.0, " s"))


CASES = {"overhead": overhead, "workers": workers, "many": many, "report": report}


def _as_much(
    name: str, peer: str, ours: float, theirs: float, unit: str, runs: int, most: float, note: str = ""
) -> Row:
    ratio = ours / theirs
    return Row(name, peer, ours, theirs, unit, {"runs": runs}, ratio, "ours / theirs", None, at_most(most), note)


def _many_learners(games: int, learners: int, seeds: int) -> str:
    """One learner in one world, by many names: reports care about results only."""
    lines = [f'title = "{games} games"', f"seeds = {seeds}"]
    for game in range(games):
        lines += ["[[games]]", f'instance = {{name = "tiny", seed = {game}}}', "episodes = 200"]
    for learner in range(learners):
        lines += ["[[learners]]", 'name = "ftpl-shared"', f"multiplier = {1 + learner}"]
    return "\n".join(lines)


def _spec(seeds: int, episodes: int) -> Spec:
    return Spec.parse(SPEC.format(seeds=seeds, episodes=episodes))


def _played(spec: Spec, engine: LocalPool) -> tuple[float, float]:
    """Seconds of a call of the runner in an empty folder, and those of them that its runs took, one after the other."""
    with TemporaryDirectory() as folder, Store(folder) as store:
        began = perf_counter()
        run(spec, store, engine)
        seconds = perf_counter() - began
        return seconds, sum(float(record.made["seconds"]) for record in store.records())
