"""Completion of names in the shell, after `--learner`, `--oracle` and so on; `amdp --install-completion` installs it.

    learner: Annotated[str, typer.Option(autocompletion=completion.learners)]

Names come from entry points and lists; nothing is imported. Where no name fits, the shell offers files.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import typer

from amdp import registry
from amdp.algorithms.named import GROUP as LEARNERS
from amdp.game.delays import FORMS
from amdp.instances.named import every
from amdp.losses.by_name import standard as standard_losses
from amdp.oracles.base import GROUP as ORACLES
from amdp.oracles.projection.base import GROUP as PROJECTIONS

Completion = Callable[[str], list[str]]


def _of(names: Callable[[], Iterable[str]]) -> Completion:
    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


learners = _of(partial(registry.names, LEARNERS))
oracles = _of(partial(registry.names, ORACLES))
projections = _of(partial(registry.names, PROJECTIONS))
instances = _of(lambda: list(every()))
losses = _of(standard_losses)
delays = _of(lambda: ["".join(form.partition(":")[:2]) for form in FORMS])  # up to their first number


def option(names: Completion, help: str, *declarations: str) -> Any:
    """An option whose value the shell completes."""
    return typer.Option(*declarations, help=help, autocompletion=names)
