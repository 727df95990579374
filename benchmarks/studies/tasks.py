"""Small measurements that are not runs of a spec: one file of JSON each, so that a study that was stopped goes on."""

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeVar

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
    sizes: tuple[tuple[int, int], tuple[int, int]],
    runs: Callable[[int, int], Iterable[Kind]],
    table: Callable[[dict[Kind, dict[str, float]]], str],
) -> None:
    """The command of a study: play what is missing, print the table, and keep it in the folder.

    `sizes` are rounds and seeds of the short form and of the full one.
    """
    short, full = sizes
    parser = ArgumentParser(prog=f"python -m benchmarks.studies.{module}", description=words)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    instead = f"{full[0]:,} rounds and {full[1]} seeds instead of {short[0]} and {short[1]}"
    parser.add_argument("--full", action="store_true", help=instead)
    parser.add_argument("--rounds", type=int, help="so many rounds")
    asked = parser.parse_args(arguments)
    one_thread()
    rounds, seeds = full if asked.full else short
    with ProcessPoolExecutor(asked.workers, get_context("spawn")) as pool:
        found = gathered(runs(asked.rounds or rounds, seeds), asked.folder, pool)
    text = table(found)
    (asked.folder / f"{name}.md").write_text(text + "\n")
    print(text)


def _write(task: Task, folder: Path) -> str:
    result = task.measured()
    unfinished = folder / (task.file + ".part")
    unfinished.write_text(json.dumps(result))
    unfinished.replace(folder / task.file)  # a file that is there is whole
    return task.file
