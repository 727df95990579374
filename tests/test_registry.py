"""Names to classes, through entry points."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest
from worlds import random_rows

from amdp import InvalidInput, Kernel, MarkovPolicies, MissingDependency, Planner, bind, oracle, registry
from amdp.model.domains import Domain
from amdp.oracles.base import GROUP
from amdp.oracles.markov.dynamic_programming import BackwardInduction
from amdp.oracles.markov.linear_program import OccupancyProgram

DOMAIN = MarkovPolicies(Kernel(random_rows((2, 2, 2), np.random.default_rng(0))))


def offer(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Pretend that an installed package offers one more oracle."""
    known = registry._entries(GROUP)
    entries = {**known, name: EntryPoint(name, value, GROUP)}
    monkeypatch.setattr(registry, "_entries", lambda group: entries)


def test_the_oracles_of_this_package_are_found_by_name() -> None:
    assert {"dp", "lp", "pulp", "cvxpy", "enumeration"} <= set(registry.names(GROUP))
    assert registry.names(GROUP) == sorted(registry.names(GROUP))
    assert registry.find(GROUP, "dp") is BackwardInduction
    assert oracle("lp", seconds=2.0, gap=1e-6) == OccupancyProgram(seconds=2.0, gap=1e-6)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"no 'gurobi' in amdp.oracles; known names: auto, .*cvxpy, .*dp, .*lp"):
        oracle("gurobi")
    with pytest.raises(InvalidInput, match="known names"):
        bind("simplex", DOMAIN)


def test_an_unknown_option_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="'lp' has no option 'time_limit'; its options: seconds, gap, threads"):
        oracle("lp", time_limit=3)
    with pytest.raises(InvalidInput, match="'dp' has no option 'seconds'; it has no options"):
        oracle("dp", seconds=3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lp", {"seconds": -1.0}, r"seconds = -1.0; it must be at least 0"),
        ("lp", {"seconds": float("nan")}, "seconds = nan"),
        ("lp", {"gap": -1e-9}, "gap = -1e-09"),
        ("lp", {"threads": 0}, "threads = 0"),
        ("pulp", {"seconds": -0.5}, "seconds = -0.5"),
        ("pulp", {"solver": "magic"}, "solver = 'magic'; PuLP does not know it; here are: HiGHS, CBC"),
        ("pulp", {"solver": 3}, "solver = 3; PuLP does not know it"),
        ("cvxpy", {"seconds": -0.5}, "seconds = -0.5"),
        ("cvxpy", {"solver": "magic"}, "solver = 'magic'; cvxpy does not know it"),
        ("enumeration", {"limit": 0}, "limit = 0; it must be at least 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        oracle(name, **options)


def test_installed_packages_are_found_without_importing_them() -> None:
    assert registry.missing(("numpy", "no_such_package", "highspy")) == ["no_such_package"]
    registry.require("anyone", ("numpy",))


def test_a_missing_package_is_named_with_the_way_to_install_it() -> None:
    with pytest.raises(MissingDependency, match='Figures needs no_such_package: pip install "no_such_package"'):
        registry.require("Figures", ("numpy", "no_such_package"))


@pytest.mark.parametrize(("name", "package"), [("lp", "highspy"), ("pulp", "pulp"), ("cvxpy", "cvxpy")])
def test_an_oracle_without_its_package_is_refused_when_bound(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda asked: None if asked == package else find_spec(asked))
    with pytest.raises(MissingDependency, match=f'needs {package}: pip install "{package}[<>=]'):
        bind(name, DOMAIN)
    assert issubclass(MissingDependency, ImportError)


@dataclass(frozen=True)
class Elsewhere:
    """An oracle of another package."""

    patience: int = 3
    requires: ClassVar[tuple[str, ...]] = ()

    def supports(self, domain: Domain) -> bool:
        return True

    def bind(self, domain: Domain) -> Planner:
        return BackwardInduction().bind(domain)


def test_an_oracle_of_another_package_is_used_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "elsewhere", f"{__name__}:Elsewhere")
    assert oracle("elsewhere", patience=5) == Elsewhere(patience=5)
    assert bind("elsewhere", DOMAIN).minimize(np.zeros((1, 2, 2, 2))).objective[0] == 0.0


def test_an_oracle_whose_module_needs_an_absent_package_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "absent", "no_such_package.oracle:Oracle")
    with pytest.raises(MissingDependency, match="no_such_package"):
        oracle("absent")
