"""Regret against total delay D for one K: draws docs/figures/delay-rates.svg and prints the numbers.

python -m benchmarks.studies.delay_rates FOLDER
"""

from collections.abc import Iterable, Sequence

from benchmarks.studies.choosing import Choice
from benchmarks.studies.curves import Curve, Panel, Study, command
from benchmarks.studies.runs import Run

ROUNDS, SEEDS = 10_000, 20
FIXED = ("fixed:0", "fixed:1", "fixed:3", "fixed:10", "fixed:30", "fixed:100")
BURSTS = ("bursts:1:1", "bursts:3:3", "bursts:10:10", "bursts:30:30", "bursts:100:100")


def study(quick: bool, choose: Choice) -> Study:
    """Losses of a fixed law, and coins that no learner can predict; one multiple of the rate, chosen without delay."""
    rounds, seeds = (60, 2) if quick else (ROUNDS, SEEDS)

    def curve(label: str, run: Run, late: Iterable[str]) -> Curve:
        return Curve(label, tuple(run._replace(delay=delay, seed=seed) for delay in late for seed in range(seeds)))

    law = choose(Run("tiny", "bernoulli", rounds, 0))
    coins = law._replace(losses="coins")
    return Study(
        "delay-rates",
        "K + D",
        lambda result: result.run.rounds + result.total_delay,
        (
            Panel(
                f"tiny, losses of a fixed law, K = {rounds:,}, rate x {law.multiplier:g}",
                (
                    curve("fixed delays", law, FIXED),
                    curve("bursts", law, BURSTS),
                    curve("fixed delays, tuned for D = 0", law._replace(told_of_delay=False), FIXED),
                ),
            ),
            Panel(
                f"tiny, coins of which nobody knows, K = {rounds:,}, rate x {law.multiplier:g}",
                (
                    curve("fixed delays", coins, FIXED),
                    curve("bursts", coins, BURSTS),
                ),
            ),
        ),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    command(study, "Regret against total delay.", arguments)


if __name__ == "__main__":
    main()
