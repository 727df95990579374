"""Small measurements that are not runs of a spec: one file of JSON each, so that a study that was stopped goes on."""

import json
from collections.abc import Iterable
from concurrent.futures import Executor, as_completed
from pathlib import Path
from typing import Protocol, TypeVar


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


def _write(task: Task, folder: Path) -> str:
    result = task.measured()
    unfinished = folder / (task.file + ".part")
    unfinished.write_text(json.dumps(result))
    unfinished.replace(folder / task.file)  # a file that is there is whole
    return task.file
