"""Worlds without an end, for `amdp solve --discount` and `--average`: the domain, and the costs that never change."""

from amdp.arrays import Floats
from amdp.errors import InvalidInput
from amdp.instances import Instance
from amdp.instances.entrance import EnteredInstance
from amdp.model.endless import AverageCostPolicies, DiscountedPolicies, EndlessPolicies


def endless(built: Instance, discount: float | None, average: bool) -> tuple[EndlessPolicies, Floats]:
    """The policies of a world that go on for ever, and its costs `[s, a]`; an entrance becomes the law of the start."""
    if average and discount is not None:
        raise InvalidInput("--discount and --average are two objectives; give one of them")
    if built.budgets is not None:
        raise InvalidInput(f"{built.name} has budgets, which are those of an episode; for ever there are none")
    world = built.inside if isinstance(built, EnteredInstance) else built
    start = built.start if isinstance(built, EnteredInstance) else world.initial
    first: Floats = world.costs[0]
    if world.costs.strides[0] != 0 and (world.costs != first).any():
        raise InvalidInput(f"the costs of {world.name} change from step to step; for ever they must stay the same")
    if discount is None:
        return AverageCostPolicies(world.kernel, start), first
    return DiscountedPolicies(world.kernel, discount, start), first
