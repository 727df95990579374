"""Plays the runs that a spec asks for and that are not there yet.

The runner alone writes records, which the engine's workers send it; a worker keeps the state of its own long run. A run
whose worker ends is tried again, a run that raises is recorded with its error, and neither stops the others.
"""

import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field
from threading import Event
from typing import Self

from amdp.errors import InvalidInput
from amdp.experiments import manifest
from amdp.experiments.engines import Engine
from amdp.experiments.execution import git_revision, lost, versions_of
from amdp.experiments.progress import Tally, Watcher
from amdp.experiments.record import Record
from amdp.experiments.spec import MOST_NAMED, Planned, Spec
from amdp.experiments.storage import Store
from amdp.text import quoted

ATTEMPTS = 3  # of a run whose workers end
READING_INTERVAL = 1.0  # seconds between two pictures while stored runs are read
POLL_INTERVAL = 0.25  # seconds without an answer after which the runner looks at claims, progress and stop
SHARD = re.compile(r"\d{1,9}/\d{1,9}")


@dataclass(frozen=True)
class Shard:
    """Every `of`-th run, for arrays of jobs; counted from 1."""

    index: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.of:
            raise InvalidInput(f"shard {self}; give i/n with i within 1 .. n")

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shard that `i/n` names: the i-th of n."""
        if not SHARD.fullmatch(text):
            raise InvalidInput(f"shard {quoted(text)}; give i/n, such as 3/8")
        return cls(*map(int, text.split("/")))

    def take(self, runs: Sequence[Planned]) -> list[Planned]:
        """Its own runs, dealt out by id, which is as good as at random: no shard gets all the slow ones."""
        mine = set(sorted({planned.id for planned in runs})[self.index - 1 :: self.of])
        return [planned for planned in runs if planned.id in mine]


@dataclass
class Outcome:
    """What came of it: runs that were there, that were played here, that failed (now or before), and are missing."""

    found: int = 0
    played: int = 0
    failed: list[str] = field(default_factory=list)  # ids
    missing: int = 0  # of this runner's runs: it was interrupted
    tuning: int = 0  # tuning runs of other shards that are missing, without which the tuned runs are not known
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether all runs of this runner are there."""
        return not (self.missing or self.tuning)


def run(
    spec: Spec,
    store: Store,
    engine: Engine,
    watcher: Watcher | None = None,
    shard: Shard | None = None,
    retry_failed: bool = False,
    stop: Event | None = None,
    attempts: int = ATTEMPTS,
) -> Outcome:
    """Play what is missing: first the runs that depend on no others, then those that tries decide, batch by batch.

    A run whose workers end `attempts` times is recorded as failed.
    """
    mine, asked_to_stop = shard or Shard(), stop or Event()
    with watcher or Watcher() as shown, engine:
        # Here, since an engine that cannot be had leaves the folder as it was.
        replaced = store.prepare(spec.titled, manifest.dump(spec))
        for note in (*spec.notes, *_folder_notes(spec, store, replaced)):
            shown.note(note)
        session = _Session(store, engine, shown, retry_failed, attempts, asked_to_stop)
        plan = spec.plan(store.final_paid)
        for batch in plan:
            session.play(mine.take(batch))
            if asked_to_stop.is_set():
                break
        for note in _shortened_list(plan.warnings):
            shown.note(note)
    if plan.waiting and not asked_to_stop.is_set():
        session.outcome.tuning = plan.missing
    return session.outcome


def _folder_notes(spec: Spec, store: Store, replaced: bool) -> Iterator[str]:
    """Notes on stored runs of other specs, and on files that are no records."""
    known = {planned.id for planned in spec.first()}
    if spec.tune and any(run not in known for run in store.ids()):
        known = {planned.id for batch in spec.plan(store.final_paid) for planned in batch}
    others = store.others(known)
    if replaced and others:
        yield f"another spec was here: {others} stored runs are not of this one; they are kept"
    files = {store.file(run) for run in known}
    yield from [f"left out: {message}" for file, message in store.broken.items() if file not in files][:MOST_NAMED]


def _shortened_list(notes: Iterable[str]) -> list[str]:
    """The first notes, and how many more there are."""
    told = list(notes)
    more = len(told) - MOST_NAMED
    return told[:MOST_NAMED] + ([f"and {more} more warnings about tuning: see the report"] if more > 0 else [])


class _Session:
    """The loop: claim, submit, wait, write. Only runs under way are held."""

    def __init__(
        self, store: Store, engine: Engine, watcher: Watcher, retry_failed: bool, attempts: int, stop: Event
    ) -> None:
        self.outcome = Outcome()
        self._store, self._engine, self._watcher, self._stop = store, engine, watcher, stop
        self._retry_failed, self._attempts = retry_failed, attempts
        self._tally = Tally()
        self._todo: deque[Planned] = deque()
        self._elsewhere: deque[Planned] = deque()  # claimed by another runner when we came by
        self._under_way: dict[Future[Record], Planned] = {}
        self._losses: Counter[str] = Counter()
        self._tried: set[str] = set()  # failed before, and to be tried once more
        self._counted: set[str] = set()  # ids of runs that are done
        self._other_versions: set[str] = set()  # of packages; noted already
        for note in engine.notes:
            watcher.note(note)

    def play(self, runs: Iterable[Planned]) -> None:
        """Play the runs that are not stored yet, until all are or we are asked to stop."""
        self._sort(runs)
        self._show()
        try:
            while self._todo or self._elsewhere or self._under_way:
                self._submit()
                answers = self._wait()
                if self._stop.is_set():
                    self._keep(answers)
                    return
                self._submit()  # the worker goes on while we write
                self._keep(answers)
                self._show()
        finally:
            self._leave()

    def _sort(self, runs: Iterable[Planned]) -> None:
        """Put each run among those that are stored or those to do."""
        # A tuned run may be that of theory, which was found or played before.
        new = [planned for planned in reversed(list(runs)) if planned.id not in self._counted]
        unique = list({planned.id: planned for planned in new}.values())[::-1]
        self._tally.expect(unique)
        looked = time.monotonic()
        for planned in unique:
            record = self._store.find(planned.id)
            if record is None:
                self._todo.append(planned)
            elif record.failure and self._retry_failed:
                self._tried.add(planned.id)
                self._todo.append(planned)
            else:
                self._found(planned, record)
            if time.monotonic() - looked > READING_INTERVAL:
                looked = time.monotonic()
                self._show()
        if not self._tally.worked:
            self._tally.began = time.monotonic()  # reading is not playing
        wanted = {self._store.file(planned.id) for planned in unique}
        for message in [message for file, message in self._store.broken.items() if file in wanted][:MOST_NAMED]:
            self._watcher.note(f"not trusted, and played again: {message}")

    def _submit(self) -> None:
        while self._todo and len(self._under_way) < self._engine.capacity and not self._stop.is_set():
            planned = self._todo.popleft()
            if not self._store.claim(planned.id):
                self._elsewhere.append(planned)
                continue
            record = self._store.find(planned.id)  # another runner may have finished it since
            if record and not (record.failure and planned.id in self._tried):
                self._store.release(planned.id)
                self._found(planned, record)
                continue
            try:
                future = self._engine.submit(
                    planned.settings, self._tally.place(planned), self._store.unfinished(planned.id)
                )
            except BaseException:
                self._todo.appendleft(planned)
                self._store.release(planned.id)
                raise
            self._under_way[future] = planned

    def _wait(self) -> list[tuple[Planned, Future[Record]]]:
        """Runs that have ended; without any, what others have claimed is looked at again."""
        if self._elsewhere and not self._under_way:
            self._stop.wait(POLL_INTERVAL)
        done = wait(self._under_way, POLL_INTERVAL, FIRST_COMPLETED).done
        if not self._todo:
            self._todo, self._elsewhere = self._elsewhere, self._todo
        return [(self._under_way.pop(future), future) for future in done]

    def _keep(self, answers: list[tuple[Planned, Future[Record]]]) -> None:
        for planned, future in answers:
            record = self._record(planned, future)
            if record is None:
                self._todo.appendleft(planned)
                continue
            self._store.write(record)
            self._store.release(planned.id)
            self._tried.discard(planned.id)
            self.outcome.played += 1
            self._count(planned, record, here=True)

    def _record(self, planned: Planned, future: "Future[Record]") -> Record | None:
        """What came of a run; None if it must be tried again."""
        try:
            return future.result()
        except (Exception, CancelledError, SystemExit) as problem:
            if not self._engine.lost(problem):
                return lost(planned.settings, type(problem).__name__, str(problem))
        self._losses[planned.id] += self._engine.began(future)
        if self._losses[planned.id] < self._attempts:
            return None
        reason = "without an answer: killed, out of memory, or a solver crashed"
        return lost(planned.settings, "WorkerLost", f"its worker ended {self._attempts} times {reason}")

    def _found(self, planned: Planned, record: Record) -> None:
        self.outcome.found += 1
        self._count(planned, record, here=False)
        theirs = {**record.made["versions"], "revision": record.made.get("git")}
        ours = {**versions_of(planned.settings), "revision": git_revision()}
        for name, other in theirs.items():
            version = f"{name} {other}"
            if other and ours.get(name) and other != ours[name] and version not in self._other_versions:
                self._other_versions.add(version)
                self._watcher.note(f"some runs are of {version}, others of {ours[name]}")

    def _count(self, planned: Planned, record: Record, here: bool) -> None:
        self._tally.count(planned, record, here)
        self._counted.add(planned.id)
        if record.failure:
            self.outcome.failed.append(planned.id)
            if len(self.outcome.failed) <= MOST_NAMED:
                named = f"{planned.learner} in {planned.game}, seed {planned.settings.seed}"
                self._watcher.note(f"failed: {named}: {record.failure.kind}: {record.failure.message}")

    def _show(self) -> None:
        self._tally.waiting = len(self._elsewhere)
        self._tally.playing = self._engine.playing()
        self._watcher.show(self._tally)

    def _leave(self) -> None:
        """Release the claims on unfinished runs, and count them."""
        for planned in self._under_way.values():
            self._store.release(planned.id)
        self.outcome.missing += len(self._todo) + len(self._elsewhere) + len(self._under_way)
        self.outcome.interrupted = self._stop.is_set()
