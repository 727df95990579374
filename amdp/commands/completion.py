"""Completion of names in the shell, after `--learner`, `--oracle` and so on; `amdp --install-completion` installs it.

    learner: Annotated[str, typer.Option(autocompletion=completion.learners)]

Names come from entry points and lists; nothing is imported. Where no name fits, the shell offers files.
"""

from collections.abc import Iterable

from amdp import registry
from amdp.algorithms.named import GROUP as LEARNERS
from amdp.game.delays import FORMS
from amdp.instances.named import continuing, standard
from amdp.losses.by_name import standard as standard_losses
from amdp.oracles.base import GROUP as ORACLES
from amdp.oracles.projection.base import GROUP as PROJECTIONS


def learners(incomplete: str) -> list[str]:
    """Names of `amdp learners`."""
    return _beginning(registry.names(LEARNERS), incomplete)


def oracles(incomplete: str) -> list[str]:
    """Names of `amdp oracles`."""
    return _beginning(registry.names(ORACLES), incomplete)


def projections(incomplete: str) -> list[str]:
    """Names of projection oracles."""
    return _beginning(registry.names(PROJECTIONS), incomplete)


def instances(incomplete: str) -> list[str]:
    """Names of `amdp instances`."""
    return _beginning([*standard(), *continuing()], incomplete)


def losses(incomplete: str) -> list[str]:
    """Names of adversaries."""
    return _beginning(standard_losses(), incomplete)


def delays(incomplete: str) -> list[str]:
    """Kinds of delay, up to their first number."""
    kinds = (form.partition(":") for form in FORMS)
    return _beginning([name + colon for name, colon, _ in kinds], incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
