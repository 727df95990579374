"""Regret over K without knowing the transitions: draws docs/figures/unknown-transitions.svg and prints the numbers.

Each point is the mean of whole games that were tuned for their own K.

python -m benchmarks.studies.unknown_transitions FOLDER
"""

from collections.abc import Sequence

from benchmarks.studies.choosing import Choice
from benchmarks.studies.curves import Curve, Panel, Seeds, Study, command, over_rounds
from benchmarks.studies.runs import Run

SEEDS: Seeds = dict.fromkeys((300, 1_000, 3_162, 10_000, 31_623), 12)
QUICK: Seeds = {30: 2, 60: 2}
SCALES = (1.0, 0.1, 0.03)
TRIED = 3_162  # rounds of the games that choose a rate


def study(quick: bool, choose: Choice) -> Study:
    """A world where moves matter little, and one in which nothing else matters; each curve at a rate of its own."""
    seeds = QUICK if quick else SEEDS

    def curve(label: str, run: Run) -> Curve:
        tuned = choose(run)
        return Curve(f"{label}, rate x {tuned.multiplier:g}", over_rounds(tuned, seeds))

    def panel(title: str, world: str) -> Panel:
        told = Run(world, "bernoulli", 30 if quick else TRIED, 0)
        boxes = (curve(f"radius x {scale}", told._replace(radius_scale=scale)) for scale in SCALES)
        return Panel(title, (curve("told the kernel", told), *boxes))

    return Study(
        "unknown-transitions",
        "K",
        lambda result: result.run.rounds,
        (panel("tiny (3, 3, 2)", "tiny"), panel("short lock (4, 3, 2)", "short-lock")),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    command(study, "Regret without knowing the transitions.", arguments)


if __name__ == "__main__":
    main()
