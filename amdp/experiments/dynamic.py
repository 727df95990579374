"""The regret of stored runs against sequences of policies: a record keeps what was paid, and the game says the rest."""

from collections.abc import Sequence
from typing import Any

from amdp import own_code, registry
from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.experiments.building import game_of
from amdp.experiments.settings import RunSettings
from amdp.experiments.spec import Role, Spec
from amdp.experiments.storage import Store
from amdp.game.arenas import Episodic
from amdp.game.dynamic_regret import best_sequences, even_edges, interval_costs
from amdp.game.loop import ArenaGame

COLUMNS = ("game", "learner", "role", "seed", "changes", "regret")


def dynamic_frame(spec: Spec, store: Store, edges: int | Sequence[int]) -> Any:
    """A `pandas.DataFrame`: a row for each run in episodes and each number of changes."""
    registry.require("a data frame", ("pandas",))
    import pandas as pd  # type: ignore[import-untyped]

    found: dict[tuple[str, int], Floats] = {}  # by game and seed: learners share them
    rows = []
    for planned in (each for batch in spec.plan(store.final_paid) for each in batch):
        settings, record = planned.settings, store.find(planned.id)
        if planned.role is Role.TUNING or settings.game.steps is not None or not (record and record.curve):
            continue
        key = planned.game, settings.seed
        if key not in found:
            found[key] = _least(settings, edges)
        about = planned.game, planned.learner, str(planned.role), settings.seed
        regrets = record.curve.paid[-1] - found[key]
        rows += [(*about, changes, float(regret)) for changes, regret in enumerate(regrets)]
    return pd.DataFrame.from_records(rows, columns=list(COLUMNS))


def _least(settings: RunSettings, edges: int | Sequence[int]) -> Floats:
    """The least loss of a sequence with at most 0, 1, ... changes."""
    with own_code.looking_in(settings.folder):
        game = game_of(settings.game, settings.seed)
    if game.world.budgets is not None:
        raise InvalidInput("regret against sequences of policies, which are not held to budgets, is not known here")
    played = ArenaGame(Episodic(game.world.kernel, game.world.initial), game.losses)
    chosen = even_edges(game.rounds, edges) if isinstance(edges, int) else edges
    return best_sequences(interval_costs(played, chosen))
