"""Exponents of regret and seconds along a ladder of games of growing size, with intervals.

The intervals of exponents resample seeds: they cover the noise of seeds, not a lack of fit to a power law, and need
some seeds on every rung (see `MeanBand.between`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from amdp.arrays import Floats
from amdp.experiments.ladders import Ladder, slope
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from amdp.report.results import Series, StoredRuns
from amdp.report.statistics import Estimate, MeanBand

SEED = 20240  # of the bootstrap: the same runs, the same intervals


@dataclass(frozen=True, eq=False)
class LadderFit:
    """The growth of regret and seconds along a ladder of games: a power law, fitted."""

    ladder: Ladder
    rungs: Floats  # [r], those with runs
    regret: Floats  # [r], mean final regret
    last: Estimate  # final regret of the last rung, mean with interval
    exponent: Estimate  # of the regret
    seconds: Floats  # [r], of the learner, a round
    seconds_exponent: float
    calls: Floats  # [r], oracle calls a round
    missing: int  # runs that failed or are not there

    @property
    def empty(self) -> list[int]:
        """Rungs without a single run."""
        return [rung for rung in self.ladder.rungs if rung not in self.rungs]


def fit_ladders(spec: Spec, store: Store, ladders: Sequence[Ladder], band: MeanBand | None = None) -> list[LadderFit]:
    """The fit of each ladder to the runs that are stored."""
    runs = StoredRuns.gather(spec, store)
    series = {(each.game, each.learner): each for contest in runs.contests for each in contest.series}
    return [_fit(ladder, series, len(spec.seeds), band or MeanBand()) for ladder in ladders]


def _fit(ladder: Ladder, runs: dict[tuple[str, str], Series], seeds: int, band: MeanBand) -> LadderFit:
    by_rung = {rung: runs[key] for rung in ladder.rungs if (key := (ladder.label(rung), ladder.player)) in runs}
    rungs = np.array(sorted(by_rung), dtype=np.float64)
    samples = [by_rung[int(rung)] for rung in rungs]
    regrets = [series.final for series in samples]
    seconds, calls = (
        np.array([(ends[:, -1] / series.rounds).mean() for ends, series in zip(sums, samples, strict=True)])
        for sums in ([series.of_learner for series in samples], [series.oracle_calls for series in samples])
    )
    rng = np.random.default_rng(SEED)
    nothing = Estimate(*(np.full(1, np.nan) for _ in range(3)))
    return LadderFit(
        ladder,
        rungs,
        np.array([regret.mean() for regret in regrets]),
        band.of(regrets[-1][:, None], rng) if regrets else nothing,
        _exponent(rungs, regrets, band, rng) if len(rungs) > 1 else nothing,
        seconds,
        slope(rungs, seconds),
        calls,
        seeds * len(ladder.rungs) - sum(map(len, regrets)),
    )


def _exponent(rungs: Floats, samples: list[Floats], band: MeanBand, rng: np.random.Generator) -> Estimate:
    """Least squares through the logarithms of the means; the runs of each rung are resampled on their own."""
    value = np.array([slope(rungs, np.array([sample.mean() for sample in samples]))])
    resampled = np.array(
        [
            slope(rungs, np.array([rng.choice(sample, len(sample)).mean() for sample in samples]))
            for _ in range(min(band.resamples, 1000))
        ]
    )
    return band.between(value, resampled[:, None], min(len(sample) for sample in samples))
