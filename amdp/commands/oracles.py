"""`amdp oracles`: the planning oracles by name, the policies that each one solves for, and packages that it lacks."""

from collections.abc import Mapping
from math import inf
from typing import Annotated, Any

import typer

from amdp import registry
from amdp.commands import completion, listing
from amdp.commands.listing import Entry, settings_text, summary
from amdp.commands.screen import AsJson, PolicyClass, clear_errors, print_json
from amdp.errors import MissingDependency
from amdp.oracles.base import GROUP, PlanningOracle, describe, oracle
from amdp.testing import planning_domains

KINDS = {  # of domains: the class of their policies, and words
    "MarkovPolicies": (PolicyClass.MARKOV, "Markov policies"),
    "BudgetedPolicies": (PolicyClass.MARKOV, "Markov policies within budgets"),
    "StationaryPolicies": (PolicyClass.STATIONARY, "stationary policies"),
}
OTHER_KINDS = {  # that `amdp solve` does not offer by --domain
    "DiscountedPolicies": "discounted costs without an end",
    "AverageCostPolicies": "average costs without an end",
    "MultiModel": "several models at once",
}
HINT = "amdp oracles NAME: its options. Markov policies depend on step and state, stationary ones on the state alone."


def oracles(
    names: Annotated[list[str] | None, listing.names_of(completion.oracles)] = None,
    policies: Annotated[
        PolicyClass | None, typer.Option("--domain", help="Only oracles for policies of this kind, as in `amdp solve`.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the planning oracles: the domains that each one solves, its options, and packages that it lacks.

    Example: amdp oracles --domain stationary

    Example: amdp oracles lp
    """
    with clear_errors():
        rows = [_row(name) for name in listing.chosen("oracle", names, registry.names(GROUP))]
    rows = [row for row in rows if policies is None or _is_of(row, policies)]
    if as_json:
        print_json(rows)
        return
    ordered = sorted(rows, key=lambda row: ([not _over(row, kind) for kind in KINDS], row["solves"]))
    listing.show(
        listing.by_heading((_heading(row), _entry(row)) for row in ordered),
        whole=bool(names),
        hint=HINT,
    )


def _row(name: str) -> dict[str, Any]:
    try:
        chosen: PlanningOracle = oracle(name)
    except MissingDependency as problem:
        return {"name": name, "what": "", "solves": [], "options": {}, "missing": problem.remedy}
    values = {option: getattr(chosen, option) for option in registry.known_options(type(chosen))}
    return {
        "name": name,
        "what": summary(type(chosen)),
        "solves": list(dict.fromkeys(describe(domain) for domain in planning_domains() if chosen.supports(domain))),
        "options": {option: _plain(value) for option, value in values.items()},
        "missing": registry.remedy(registry.missing(chosen.requires)),
    }


def _plain(value: Any) -> Any:
    """A setting as JSON has it: no limit is null, options of a solver are a table."""
    return dict(value) if isinstance(value, Mapping) else None if value == inf else value


def _over(row: dict[str, Any], kind: str) -> list[str]:
    """The dynamics over which an oracle finds policies of a kind."""
    prefix = f"{kind} over "
    return [text.removeprefix(prefix) for text in row["solves"] if text.startswith(prefix)]


def _is_of(row: dict[str, Any], policies: PolicyClass) -> bool:
    """Whether an oracle finds policies of a class, without budgets or within some."""
    return any(_over(row, kind) for kind, (of_kind, _) in KINDS.items() if of_kind is policies)


def _heading(row: dict[str, Any]) -> str:
    parts = [f"{words} over {', '.join(_over(row, kind))}" for kind, (_, words) in KINDS.items() if _over(row, kind)]
    parts += [words for kind, words in OTHER_KINDS.items() if any(text.startswith(kind) for text in row["solves"])]
    text = "; ".join(parts) or "not known until it is installed"
    return text[0].upper() + text[1:]


def _entry(row: dict[str, Any]) -> Entry:
    absent = f"Not installed: {row['missing']}" if row["missing"] else ""
    options = {"options": settings_text(row["options"])} if row["options"] else {}
    return Entry(row["name"], " ".join(filter(None, (row["what"], absent))), options)
