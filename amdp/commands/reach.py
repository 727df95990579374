"""`amdp reach`: how likely each state of a world can be made at each step, and what that says about resampling."""

from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from amdp.arrays import Floats
from amdp.commands import completion
from amdp.commands.screen import AsJson, Screen, WorldSettings, clear_errors, print_json, settings, unmarked
from amdp.commands.solve import instance_of
from amdp.instances import Instance
from amdp.model.domains import MarkovPolicies
from amdp.model.reach import reach as reach_of_states
from amdp.model.reach import reach_of
from amdp.model.segments import Segment

MAX_STEPS = 12  # rows of the table
SMALL_GAIN = 1.5  # plain trials over scaled ones: what is not above this is called little
SAVES_LITTLE = "in this world scaling saves little"


def reach(
    instance: Annotated[
        str,
        typer.Argument(
            help="A name of `amdp instances`, or a .npz or .json file.", autocompletion=completion.instances
        ),
    ],
    world: WorldSettings = None,
    as_json: AsJson = False,
) -> None:
    """Show the reach of the states of a world, and how many resampling trials it costs FTPL to learn there.

    The reach of a state at a step is the greatest chance, over all policies, of being there; C is their sum over all
    states. On average a step takes about A C trials if they are scaled by the reach (more over a dense kernel where
    rare states are close together); if they are not, up to A times the number of states within reach.

    Example: amdp reach river-swim

    Example: amdp reach random-dense --world n_states=40 --json
    """
    with clear_errors():
        built = instance_of(instance, settings("--world", world or ()))
        waiting = unmarked(f"{built.name} (the first run on a machine compiles for some seconds)")
        with Screen(stderr=True).status(waiting):
            found = _summary(built)
    if as_json:
        print_json(found)
    else:
        _show(found)


def _summary(built: Instance) -> dict[str, Any]:
    """The reach `[h, s]`, its sums, and the trials of a step: plain ones take `A` times the states within reach.

    Scaled ones take `A` times the sum of the bounds that are in use, which over dense kernels are above the reach.
    """
    steps, states, actions = built.shape
    reaches = reach_of_states(built.kernel, built.initial)
    sums = reaches.sum(axis=1)
    in_use = reach_of(MarkovPolicies(built.kernel, built.initial))
    everywhere = [Segment(np.full(steps, s), np.zeros(steps, int)) for s in range(states)]
    bounds = np.sum([in_use.bounds(place) for place in everywhere], axis=0)
    return {
        "instance": built.name,
        "steps": steps,
        "states": states,
        "actions": actions,
        "initial": built.initial,
        "sums": sums.tolist(),
        "trials": (actions * bounds).tolist(),
        "plain_trials": (actions * (reaches > 0.0).sum(axis=1)).tolist(),
        "reach": reaches.tolist(),
    }


def _show(found: dict[str, Any]) -> None:
    screen = Screen()
    steps, reaches = found["steps"], np.array(found["reach"])
    size = f"{found['states']} states, {found['actions']} actions, from state {found['initial']}"
    table = Table(title=f"{found['instance']}: {size}")
    for title in ("step", "C", "trials", "plain", "most reachable", "least reachable"):
        table.add_column(title, justify="right")
    for h in _some(steps):
        trials = f"{found['trials'][h]:.1f}", str(found["plain_trials"][h])
        extremes = _at(reaches[h], int(reaches[h].argmax())), _at(reaches[h], int(reaches[h].argmin()))
        table.add_row(str(h), f"{found['sums'][h]:.3g}", *trials, *extremes)
    screen.print(table)
    if steps > MAX_STEPS:
        screen.print(f"({MAX_STEPS} of {steps} steps; --json gives all)")
    screen.print(_verdict(found))


def _some(steps: int) -> list[int]:
    """All steps, or as many as fit, from the first to the last."""
    return sorted(set(np.linspace(0, steps - 1, min(steps, MAX_STEPS)).round().astype(int).tolist()))


def _at(reaches: Floats, state: int) -> str:
    return f"state {state}: {reaches[state]:.3g}"


def _verdict(found: dict[str, Any]) -> str:
    """One sentence: what the reach says about the cost of FTPL in this world."""
    scaled, plain = np.mean(found["trials"]), np.mean(found["plain_trials"])
    trials = f"up to {scaled:.3g} resampling trials a step, and a batch"
    needs = f"On average FTPL needs {trials}, if they are scaled (ftpl-scaled)"
    saved = f"scaling saves a factor of up to {plain / scaled:.3g}" if plain > SMALL_GAIN * scaled else SAVES_LITTLE
    return f"{needs}, and up to {plain:.3g} if they are not (ftpl): {saved}."
