"""`amdp new`: writes a commented spec of an experiment."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from amdp.commands.screen import Screen, clear_errors
from amdp.errors import InvalidInput
from amdp.text import as_name

TEMPLATE = """\
# Which learner has the least regret, in which game? Run it with: amdp compare {name} --out results
# Names: amdp instances, amdp learners, amdp oracles.

title = "My comparison"
seeds = 3           # runs of each pairing; or a list [1, 5, 9]; or {{ first = 100, count = 10 }}
checkpoints = 30    # about so many times the regret is measured, evenly spaced in the logarithm
# baseline = false  # uniform play is added to every game, to compare with; this switches it off

# Keys that all games or all learners share; each of them may say otherwise.
[defaults]
episodes = 500

# A list where one value is expected stands for several runs: here two games.
[[games]]
label = "river"
instance = {{ name = "river-swim", n_steps = 6, n_states = 4 }}
losses = "bernoulli"              # or a table with settings: {{ name = "swap", first = 100 }}; or a .csv, .npz file,
#                                 # found from the folder of this spec
delay = ["none", "fixed:20"]      # rounds until the feedback arrives

[[games]]
label = "unknown"
instance = "tiny"
unknown = true                    # the learner does not know the transitions
radius_scale = 0.1                # of the confidence sets; 1 is what theory asks for
# feedback = "bandit"             # or "full", "aggregate"; without it, what each learner understands
# learners = ["uob-reps"]         # without it, all that can play

# One stream of steps instead of episodes.
[[games]]
label = "stream"
instance = "forest"
losses = "bernoulli"
steps = 2000
# comparator = {{ name = "auto", nodes = 100000 }}   # finds the best policy in hindsight; a limit of
#                                 # seconds instead of nodes would make runs that cannot be repeated

[[learners]]
name = "ftpl"
oracle = "dp"                     # or ["dp", "lp"], or {{ name = "lp", threads = 1 }}

[[learners]]
name = "o-reps"                   # it needs known transitions: its pairing with "unknown" is skipped
projection = "newton"

[[learners]]
name = "uob-reps"
games = ["unknown"]               # without it, all that it can play

[[learners]]
label = "ftpl in epochs"
name = "ftpl-infinite"
# settings = {{ epochs = [10, 20] }}
# tune = {{ multiplier = [1, 2, 4] }}   # a grid of its own, with as many combinations as that of [tune]

# Try multipliers of the rate that theory gives, on seeds that are not used otherwise; then play with the best.
[tune]
multipliers = [0.3, 1, 3]         # or any settings: grid = {{ multiplier = [1, 4, 16], limit = [10, 100] }}
# search = "halving"              # short games for all, longer ones for the better half, and so on
seeds = 2
rounds = 200        # of a try, at most
"""


def new(
    file: Annotated[Path, typer.Argument(help="Where to write it, such as spec.toml.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented spec of an experiment that runs as it is.

    Example: amdp new spec.toml
    """
    with clear_errors():
        try:
            with file.open("w" if force else "x", encoding="utf-8") as stream:
                stream.write(TEMPLATE.format(name=as_name(file.name)))
        except FileExistsError as problem:
            raise InvalidInput(f"{file} is there already; --force writes over it") from problem
        except OSError as problem:
            raise InvalidInput(f"{file} cannot be written: {problem.strerror}") from problem
    Screen().say(f"{file} is written; run it: {shlex.join(['amdp', 'compare', str(file), '--out', 'results'])}")
