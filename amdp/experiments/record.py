"""What a run leaves behind."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from math import inf, isfinite
from typing import Any, NoReturn, Self, get_type_hints

import numpy as np

from amdp import options
from amdp.errors import InvalidInput
from amdp.experiments.settings import RunSettings, canonical
from amdp.game.regret import Regret
from amdp.game.rounds import Timing

COUNTS = ("rounds", "trials", "oracle_calls", "rebuilds")
AMOUNTS = ("paid", "best", "best_bound", "paid_entering")
SEALED = b'{"sha256":"%s",'  # the begin of a file; the checksum is that of the rest, behind a brace
HEX = 64
MADE = {"versions": dict[str, str], "seconds": float}  # what others read of how a run was made


@dataclass(frozen=True)
class Curve:
    """Sums up to each checkpoint `[c]`; the regret lies between `paid - best` and `paid - best_bound`."""

    rounds: list[int]
    paid: list[float]
    best: list[float]
    best_bound: list[float | None]  # None: nothing is proved
    paid_entering: list[float]
    trials: list[int]
    oracle_calls: list[int]
    rebuilds: list[int]
    bound: list[float | None]  # what theory allows by then; None where it does not speak
    spent: dict[str, list[float]]  # seconds of the clock, by part of the loop: see `Timing`
    cpu: dict[str, list[float]]  # seconds of the processor
    used: dict[str, list[float]] = field(default_factory=dict)  # the expected use of each budget, by its name

    @classmethod
    def of(cls, regret: Regret, bound: list[float | None], budgets: tuple[str, ...] = ()) -> Self:
        """From arrays to lists; amounts that are no numbers are refused."""
        for name in ("paid", "best", "paid_entering"):
            if not np.isfinite(getattr(regret, name)).all():
                raise InvalidInput(f"{name} is not finite: the losses or the policies are damaged")
        plain = {name: getattr(regret, name).tolist() for name in COUNTS + AMOUNTS}
        plain["best_bound"] = [bound if isfinite(bound) else None for bound in plain["best_bound"]]
        times: dict[str, Any] = {
            name: dict(zip(Timing._fields, getattr(regret, name).T.tolist(), strict=True)) for name in ("spent", "cpu")
        }
        used = dict(zip(budgets, regret.used.T.tolist(), strict=True))
        return cls(**plain, bound=bound, **times, used=used)

    @property
    def is_whole(self) -> bool:
        """Whether there is a value of everything at each of its checkpoints, which go forward."""
        clocks = [self.spent, self.cpu]
        columns = [value for value in vars(self).values() if isinstance(value, list)]
        columns += [sums for named in (*clocks, self.used) for sums in named.values()]
        forward = all(before < after for before, after in pairwise([0, *self.rounds]))
        same = all(len(column) == len(self.rounds) for column in columns)
        return bool(self.rounds) and same and forward and all(set(clock) == set(Timing._fields) for clock in clocks)


@dataclass(frozen=True)
class Failure:
    """Why a run has no curve."""

    kind: str  # the name of the exception
    message: str
    trace: str = ""


@dataclass(frozen=True)
class Record:
    """A finished run: its settings, what came of them, and where. Either `curve` or `failure` is there."""

    settings: RunSettings
    curve: Curve | None
    failure: Failure | None = None
    used: Mapping[str, Any] = field(default_factory=dict)  # parameters that the recipe made, shape, total delay
    made: Mapping[str, Any] = field(default_factory=dict)  # versions, git revision, host, seed entropy, start, seconds

    @property
    def id(self) -> str:
        """The id of the settings."""
        return self.settings.id

    @property
    def final_regret(self) -> float:
        """The regret after all rounds against the best policy found; infinite if the run failed."""
        return self.curve.paid[-1] - self.curve.best[-1] if self.curve else inf

    @property
    def final_paid(self) -> float:
        """The loss incurred in all rounds; infinite if the run failed."""
        return self.curve.paid[-1] if self.curve else inf

    def to_bytes(self) -> bytes:
        """A file: JSON in one line, with a checksum over the rest."""
        parts = {"curve": self.curve and vars(self.curve), "failure": self.failure and vars(self.failure)}
        origin = {"id": self.id, "settings": self.settings.to_json(), "used": self.used, "made": self.made}
        content = canonical(parts | origin)
        return SEALED % _sum(content) + content[1:] + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The record in a file that `to_bytes` made; a file that is not whole, or not of this kind, is refused."""
        start = len(SEALED % (b"0" * HEX))
        rest = b"{" + data[start:-1]
        if not data.startswith(SEALED.partition(b"%")[0]):
            raise InvalidInput("not the record of a run")
        if data != SEALED % _sum(rest) + rest[1:] + b"\n":
            raise InvalidInput("damaged: its checksum does not fit its content")
        try:
            content = json.loads(rest, parse_constant=_refused)
            settings = RunSettings.from_json(content["settings"])
            curve = content["curve"] and Curve(**content["curve"])
            failure = content["failure"] and Failure(**content["failure"])
            record = cls(settings, curve, failure, content["used"], content["made"])
            same = content["id"] == record.id
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
            raise InvalidInput(f"not a record that this version of amdp reads: {problem}") from problem
        if not same:
            raise InvalidInput("its id does not fit its settings; another version of amdp wrote it")
        record.require_sound()
        return record

    def require_sound(self) -> None:
        """Refuse a record with values of wrong kinds, which a whole file may hold nevertheless."""
        wrong = [name for name, kind in get_type_hints(Record).items() if not options.fits(kind, getattr(self, name))]
        if not wrong:
            wrong = [f"made.{name}" for name, kind in MADE.items() if not options.fits(kind, self.made.get(name))]
        if wrong:
            raise InvalidInput(f"damaged: its {wrong[0]} holds values of a wrong kind")
        if (self.curve is None) == (self.failure is None):
            raise InvalidInput("damaged: it must have either a curve or a failure")
        if self.curve and not self.curve.is_whole:
            raise InvalidInput("damaged: its curve does not have a value of everything at each checkpoint")


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _sum(content: bytes) -> bytes:
    return sha256(content).hexdigest().encode()
