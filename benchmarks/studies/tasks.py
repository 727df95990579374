"""Small measurements that are not runs of a spec: one file of JSON each, so that a study that was stopped goes on."""

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.page import put, require_places
from benchmarks.timing import one_thread


class Task(Protocol):
    """What to measure; it can be sent to another process, and compared."""

    @property
    def file(self) -> str:
        """A name that says all that decides the result."""
        ...

    def measured(self) -> dict[str, float]:
        """The result."""
        ...


Kind = TypeVar("Kind", bound=Task)


def gathered(tasks: Iterable[Kind], folder: Path, executor: Executor) -> dict[Kind, dict[str, float]]:
    """The results of all tasks; those that have a file in `folder` are read, the others measured."""
    wanted = list(dict.fromkeys(tasks))
    folder.mkdir(parents=True, exist_ok=True)
    missing = [task for task in wanted if not (folder / task.file).exists()]
    begun = [executor.submit(_write, task, folder) for task in missing]
    for done, ready in enumerate(as_completed(begun), start=1):
        print(f"{done}/{len(missing)} {ready.result()}", flush=True)
    return {task: json.loads((folder / task.file).read_text()) for task in wanted}


def study(
    module: str,
    words: str | None,
    name: str,
    arguments: Sequence[str] | None,
    rounds: int,
    seeds: int,
    runs: Callable[[int, int], Iterable[Kind]],
    table: Callable[[dict[Kind, dict[str, float]]], list[str]],
) -> None:
    """The command of a study: play what is missing, print the table, keep it in the folder, and put it on a page."""
    parser = ArgumentParser(prog=f"python -m benchmarks.studies.{module}", description=words)
    parser.add_argument("folder", type=Path, help="where every run leaves a file; runs that have one are not repeated")
    parser.add_argument("--workers", type=int, default=2, help="processes that play")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"of a game; {rounds:,} without it")
    parser.add_argument("--seeds", type=int, default=seeds, help=f"{seeds} without it")
    parser.add_argument("--page", type=Path, help="put the table in its place on this page")
    asked = parser.parse_args(arguments)
    if asked.page:
        require_places(asked.page, [name])
    one_thread()
    with ProcessPoolExecutor(asked.workers, get_context("spawn")) as pool:
        lines = table(gathered(runs(asked.rounds, asked.seeds), asked.folder, pool))
    text = "\n".join(lines)
    (asked.folder / f"{name}.md").write_text(text + "\n")
    print(text)
    if asked.page:
        put(asked.page, name, lines)


def _write(task: Task, folder: Path) -> str:
    result = task.measured()
    unfinished = folder / (task.file + ".part")
    unfinished.write_text(json.dumps(result))
    unfinished.replace(folder / task.file)  # a file that is there is whole
    return task.file
