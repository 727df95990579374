"""Plays the runs that a spec asks for and that are not there yet.

The runner alone writes; the engine's workers send it records. A run whose worker ends is tried again, a run that raises
is recorded with its error, and neither stops the others.
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
from amdp.experiments.execution import git_revision, lost, versions
from amdp.experiments.progress import Silent, Tally, Watcher
from amdp.experiments.record import Record
from amdp.experiments.spec import Planned, Role, Spec
from amdp.experiments.storage import Store
from amdp.text import quoted

ATTEMPTS = 3  # of a run whose workers end
READING = 1.0  # seconds between two looks while stored runs are read
PAUSE = 0.25  # seconds without news after which the runner looks around
SHARD = re.compile(r"\d{1,9}/\d{1,9}")
NAMED = 10  # failures and files that are told one by one


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
        """From `i/n`."""
        if not SHARD.fullmatch(text):
            raise InvalidInput(f"shard {quoted(text)}; give i/n, such as 3/8")
        return cls(*map(int, text.split("/")))

    def take(self, planned: Sequence[Planned]) -> list[Planned]:
        """Its own runs, dealt out by id, which is as good as at random: no shard gets all the slow ones."""
        mine = set(sorted({one.id for one in planned})[self.index - 1 :: self.of])
        return [one for one in planned if one.id in mine]


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
    """Play what is missing: first the runs that the spec names, then those whose tuning they decide.

    A run whose workers end `attempts` times is recorded as failed.
    """
    mine, asked_to_stop = shard or Shard(), stop or Event()
    with watcher or Silent() as shown, engine:
        replaced = store.prepare(
            spec.titled, manifest.dump(spec)
        )  # an engine that cannot be had leaves the folder as it was
        for note in (*spec.notes, *_company(spec, store, replaced)):
            shown.note(note)
        session = _Session(store, engine, shown, retry_failed, attempts, asked_to_stop)
        first, tuned = mine.take(spec.first()), None
        session.play(first)
        if not asked_to_stop.is_set():
            tried = spec.tried(store.final_paid)
            tuned = spec.tuned(tried)
            for (game, learner), regrets in (tried or {}).items():
                if spec.tune and spec.tune.is_tie(regrets):
                    shown.note(f"a tie: all multipliers of {learner} in {game} did alike; the nearest to 1 is taken")
            session.play(mine.take(tuned or []))
    if tuned is None and not asked_to_stop.is_set():
        session.outcome.tuning = sum(
            store.final_regret(one.id) is None for one in spec.first() if one.role is Role.TUNING
        )
    return session.outcome


def _company(spec: Spec, store: Store, replaced: bool) -> Iterator[str]:
    """What else is in the folder."""
    known = {one.id for one in spec.first()}
    if spec.tune and any(run not in known for run in store.ids()):
        known |= {one.id for one in spec.second(store.final_paid) or ()}
    others = store.others(known)
    if replaced and others:
        yield f"another spec was here: {others} stored runs are not of this one; they are kept"
    files = {store.file(run) for run in known}
    yield from [f"left out: {message}" for file, message in store.broken.items() if file not in files][:NAMED]


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
        self._flying: dict[Future[Record], Planned] = {}
        self._losses: Counter[str] = Counter()
        self._tried: set[str] = set()  # failed before, and to be tried once more
        self._counted: set[str] = set()  # a tuned run may be that of theory, which was found or played before
        self._strangers: set[str] = set()  # other versions of packages
        for note in engine.notes:
            watcher.note(note)

    def play(self, planned: Iterable[Planned]) -> None:
        """All of them, as far as they are not there, until they are or we are asked to stop."""
        self._sort(planned)
        self._show()
        try:
            while self._todo or self._elsewhere or self._flying:
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

    def _sort(self, planned: Iterable[Planned]) -> None:
        """Into those that are there and those to do."""
        unique = list({one.id: one for one in reversed(list(planned))}.values())[::-1]
        self._tally.expect(unique)
        looked = time.monotonic()
        for one in unique:
            record = self._store.find(one.id)
            if record is None:
                self._todo.append(one)
            elif record.failure and self._retry_failed and one.id not in self._counted:
                self._tried.add(one.id)
                self._todo.append(one)
            else:
                self._found(one, record)
            if time.monotonic() - looked > READING:
                looked = time.monotonic()
                self._show()
        if not self._tally.worked:
            self._tally.began = time.monotonic()  # reading is not playing
        wanted = {self._store.file(one.id) for one in unique}
        for message in [message for file, message in self._store.broken.items() if file in wanted][:NAMED]:
            self._watcher.note(f"not trusted, and played again: {message}")

    def _submit(self) -> None:
        while self._todo and len(self._flying) < self._engine.capacity and not self._stop.is_set():
            one = self._todo.popleft()
            if not self._store.claim(one.id):
                self._elsewhere.append(one)
                continue
            record = self._store.find(one.id)  # another runner may have finished it since
            if record and not (record.failure and one.id in self._tried):
                self._store.release(one.id)
                self._found(one, record)
                continue
            self._flying[self._engine.submit(one.settings, self._tally.place(one))] = one

    def _wait(self) -> list[tuple[Planned, Future[Record]]]:
        """Runs that have ended; without any, what others have claimed is looked at again."""
        if self._elsewhere and not self._flying:
            self._stop.wait(PAUSE)
        done = wait(self._flying, PAUSE, FIRST_COMPLETED).done
        if not self._todo:
            self._todo, self._elsewhere = self._elsewhere, self._todo
        return [(self._flying.pop(future), future) for future in done]

    def _keep(self, answers: list[tuple[Planned, Future[Record]]]) -> None:
        for one, future in answers:
            record = self._record(one, future)
            if record is None:
                self._todo.appendleft(one)
                continue
            self._store.write(record)
            self._store.release(one.id)
            self._tried.discard(one.id)
            self.outcome.played += 1
            self._count(one, record, here=True)

    def _record(self, one: Planned, future: "Future[Record]") -> Record | None:
        """What came of a run; None if it must be tried again."""
        try:
            return future.result()
        except (Exception, CancelledError, SystemExit) as problem:
            if not self._engine.lost(problem):
                return lost(one.settings, type(problem).__name__, str(problem))
        self._losses[one.id] += self._engine.began(future)
        if self._losses[one.id] < self._attempts:
            return None
        reason = (
            f"its worker ended {self._attempts} times without an answer: killed, out of memory, or a solver crashed"
        )
        return lost(one.settings, "WorkerLost", reason)

    def _found(self, one: Planned, record: Record) -> None:
        if one.id not in self._counted:
            self.outcome.found += 1
        self._count(one, record, here=False)
        theirs = {**record.made["versions"], "revision": record.made.get("git")}
        ours = {**versions(), "revision": git_revision()}
        for name, other in theirs.items():
            told = f"{name} {other}"
            if other and ours.get(name) and other != ours[name] and told not in self._strangers:
                self._strangers.add(told)
                self._watcher.note(f"some runs are of {told}, others of {ours[name]}")

    def _count(self, one: Planned, record: Record, here: bool) -> None:
        self._tally.count(one, record, here)
        known = one.id in self._counted
        self._counted.add(one.id)
        if record.failure and not known:
            self.outcome.failed.append(one.id)
            if len(self.outcome.failed) <= NAMED:
                named = f"{one.learner} in {one.game}, seed {one.settings.seed}"
                self._watcher.note(f"failed: {named}: {record.failure.kind}: {record.failure.message}")

    def _show(self) -> None:
        self._tally.waiting = len(self._elsewhere)
        self._tally.playing = self._engine.playing()
        self._watcher.show(self._tally)

    def _leave(self) -> None:
        """Give up what is under way."""
        for one in self._flying.values():
            self._store.release(one.id)
        self.outcome.missing += len(self._todo) + len(self._elsewhere) + len(self._flying)
        self.outcome.interrupted = self._stop.is_set()
