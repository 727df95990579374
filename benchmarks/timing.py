"""Times taken side by side: all contestants run in turn, round after round, in one process and one thread.

The clock is the processor's, so that neighbours on the machine do not count. A ratio is that of two medians; its
spread is the middle half of the ratios within the rounds.
"""

import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter, process_time

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Call = Callable[[], object]


@dataclass(frozen=True)
class Effort:
    """How long to look: at least `rounds` rounds, and more until `seconds` have gone by."""

    rounds: int
    seconds: float
    sample: float  # a call that is quicker than this is repeated within a round

    @classmethod
    def full(cls) -> "Effort":
        """For figures."""
        return cls(rounds=9, seconds=4.0, sample=20e-3)

    @classmethod
    def quick(cls) -> "Effort":
        """For a look whether everything runs."""
        return cls(rounds=2, seconds=0.0, sample=0.0)


@dataclass(frozen=True)
class Times:
    """Seconds of each contestant, one entry a round."""

    rounds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        """The median of one contestant."""
        return median(self.rounds[name])

    def ratio(self, slow: str, fast: str) -> float:
        """How many times the median of `fast` fits into that of `slow`."""
        return self.median(slow) / self.median(fast)

    def spread(self, slow: str, fast: str) -> tuple[float, float]:
        """The lower and upper quartile of the ratio within a round."""
        paired = [a / b for a, b in zip(self.rounds[slow], self.rounds[fast], strict=True)]
        low, _, high = quantiles(paired, n=4, method="inclusive")
        return low, high


def one_thread() -> None:
    """Hold the linear algebra to one thread; call before numpy is imported.

    Threads of numpy that wait for work take processor time, which would count as that of the next contestant.
    """
    os.environ.update(dict.fromkeys(THREADS, "1"))


def side_by_side(contestants: Mapping[str, Call], effort: Effort) -> Times:
    """Time all contestants in turn; each has run before, so that nothing is compiled while the clock runs."""
    repeats = {name: _repeats(call, effort.sample) for name, call in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    began, done = perf_counter(), 0
    gc.collect()
    gc.disable()
    try:
        while done < effort.rounds or perf_counter() - began < effort.seconds:
            for name, call in contestants.items():
                times[name].append(_seconds(call, repeats[name]))
            done += 1
    finally:
        gc.enable()
    return Times(times)


def _repeats(call: Call, sample: float) -> int:
    call()
    return max(1, round(sample / max(_seconds(call, 1), 1e-9))) if sample else 1


def _seconds(call: Call, repeats: int) -> float:
    for _ in range(repeats // 4):
        call()  # whoever ran before has filled the caches with its own
    began = process_time()
    for _ in range(repeats):
        call()
    return (process_time() - began) / repeats
