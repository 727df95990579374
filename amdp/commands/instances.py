"""`amdp instances`: the built-in worlds by name, with their sizes and settings."""

from typing import Annotated, Any

import typer

from amdp import options
from amdp.commands import completion, listing
from amdp.commands.listing import Entry, settings_text, summary
from amdp.commands.screen import AsJson, clear_errors, print_json
from amdp.instances import budgeted, continuing, every
from amdp.instances.named import World

SIZES = ("steps", "states", "actions")
MEANING = "steps x states x actions; settings"
HEADINGS = {
    "episodes": f"Worlds for episodes ({MEANING})",
    "budgets": f"Worlds for episodes within budgets ({MEANING})",
    "stream": f"Worlds for one stream of steps ({MEANING})",
}
HINT = "amdp instances NAME: what it is. Settings are given by --world KEY=VALUE. One stream is played with --steps N."


def instances(
    names: Annotated[list[str] | None, listing.names_of(completion.instances)] = None,
    episodes: Annotated[bool, typer.Option("--episodes", help="Only worlds that are built for episodes.")] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Only worlds that are built for one stream.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the built-in worlds, their sizes and their settings; infinite-horizon worlds come last.

    Example: amdp instances

    Example: amdp instances river-swim
    """
    with clear_errors():
        known = every()
        found = listing.chosen("instance", names, list(known))
        kept = [name for name in found if not (episodes or stream) or (stream if name in continuing() else episodes)]
        rows = [_row(name, known[name]) for name in kept]
    if as_json:
        print_json(rows)
        return
    listing.show(
        listing.by_heading((_heading(row), _entry(row, known[row["name"]])) for row in rows),
        whole=bool(names),
        hint=HINT,
    )


def _row(name: str, make: World) -> dict[str, Any]:
    return {"name": name, **dict(zip(SIZES, make().shape, strict=True)), "settings": options.defaults(make)}


def _heading(row: dict[str, Any]) -> str:
    if row["name"] in budgeted():
        return HEADINGS["budgets"]
    return HEADINGS["stream" if row["name"] in continuing() else "episodes"]


def _entry(row: dict[str, Any], make: World) -> Entry:
    sizes = " x ".join(str(row[size]) for size in SIZES)
    return Entry(row["name"], f"{sizes}; {settings_text(row['settings'])}", {"what": summary(make)})
