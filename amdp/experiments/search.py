"""How the candidates of a grid are searched: how many of them play games of which length, one stage after the other.

A search decides the numbers before anything is played, so that all learners with grids of one size have the same tries.
A new search is a class with a `schedule`, and an entry of `SEARCHES`.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from amdp.experiments import reading

MOST_FACTOR = 100


class Stage(NamedTuple):
    """The number of candidates that play in a stage, and the rounds of their games."""

    candidates: int
    rounds: int


@dataclass(frozen=True)
class GridSearch:
    """All candidates play games of the whole length."""

    def schedule(self, candidates: int, rounds: int) -> tuple[Stage, ...]:
        """One stage, in which all candidates play the whole length."""
        return (Stage(candidates, rounds),)


@dataclass(frozen=True)
class SuccessiveHalving:
    """All candidates play short games; the best `1 / factor` of them play games `factor` times as long, and so on.

    The last stage has at most `factor` candidates and the whole length (Jamieson and Talwalkar 2016). Each stage
    has about as many rounds in total as any other, so that the effort grows with the logarithm of the number of
    candidates. What is best in short games need not be best in long ones.
    """

    factor: int = 2

    def schedule(self, candidates: int, rounds: int) -> tuple[Stage, ...]:
        """The stages, the shortest games first."""
        counts = [candidates]
        while counts[-1] > self.factor:
            counts.append(-(-counts[-1] // self.factor))
        later = range(len(counts) - 1, -1, -1)  # stages that follow
        return tuple(
            Stage(count, max(1, rounds // self.factor**more)) for count, more in zip(counts, later, strict=True)
        )


Search = GridSearch | SuccessiveHalving
SEARCHES: dict[str, type[Search]] = {"grid": GridSearch, "halving": SuccessiveHalving}


def read_search(path: str, value: Any) -> Search:
    """A name alone, or a table with a name and options."""
    table = value if isinstance(value, dict) else {"name": value}
    reading.require_keys(path, table, ["name"])
    name_path = reading.below(path, "name") if table is value else path
    reading.require_type(name_path, table["name"], str)
    reading.require_name(name_path, table["name"], list(SEARCHES))
    search = SEARCHES[table["name"]]
    chosen = {key: item for key, item in table.items() if key != "name"}
    readers = {"factor": reading.whole(2, MOST_FACTOR)} if search is SuccessiveHalving else {}
    return search(**reading.table(path, chosen, readers))


def search_to_json(search: Search) -> dict[str, Any]:
    """A table that `read_search` takes."""
    (name,) = [name for name, kind in SEARCHES.items() if kind is type(search)]
    return {"name": name, **asdict(search)}
