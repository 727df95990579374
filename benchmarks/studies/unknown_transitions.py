"""Regret over K without knowing the transitions: draws docs/figures/unknown-transitions.svg and prints the numbers.

Each point is the mean of whole games that were tuned for their own K.

python -m benchmarks.studies.unknown_transitions FOLDER
"""

from collections.abc import Sequence

from benchmarks.studies.curves import Curve, Panel, Seeds, Study, command, over_rounds
from benchmarks.studies.runs import Run

SEEDS: Seeds = {300: 8, 1_000: 8, 3_162: 4, 10_000: 3}
QUICK: Seeds = {30: 2, 60: 2}
SCALES = (1.0, 0.1, 0.03)
MULTIPLIER = 8.0


def study(quick: bool) -> Study:
    """A world where moves matter little, and one in which nothing else matters."""
    seeds = QUICK if quick else SEEDS

    def panel(title: str, run: Run) -> Panel:
        told = Curve("told the kernel", over_rounds(run, seeds))
        boxes = (Curve(f"radius x {scale}", over_rounds(run._replace(radius_scale=scale), seeds)) for scale in SCALES)
        return Panel(title, (told, *boxes))

    return Study(
        "unknown-transitions",
        "K",
        lambda result: result.run.rounds,
        (
            panel("tiny (3, 3, 2), rate x 8", Run("tiny", "bernoulli", 0, 0, multiplier=MULTIPLIER)),
            panel("short lock (4, 3, 2), rate x 8", Run("short-lock", "bernoulli", 0, 0, multiplier=MULTIPLIER)),
        ),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    command(study, "Regret without knowing the transitions.", arguments)


if __name__ == "__main__":
    main()
