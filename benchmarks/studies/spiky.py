"""`python -m benchmarks.studies.spiky FOLDER [--cases N]`: are mixed-integer programs right where chances are tiny?

Each case is a small kernel whose rows are drawn with a concentration of 0.005 to 0.2: some chances are near 1, others
anything down to 1e-300. All policies are tried by plain formulas. Then one of five programs, each in turn, solves it.
A lie is a bound above the true optimum, a policy called optimal that is not, or an objective that is not the cost of
its policy, each by more than 1e-9 of the steps times the largest cost. Counts of 500 cases each are kept in the folder:
a study that was stopped goes on. The exit code is 1 if there was a lie.
"""

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from amdp import Kernel, Plan, StationaryPolicies, Status, bind, oracle
from amdp.arrays import Floats
from amdp.oracles.base import PlanningOracle
from benchmarks.brute_force import plain_costs, plain_optimum

SEED = 717
BLOCK = 500
TRUE = 1e-9  # of steps times the largest cost
PROGRAMS: dict[str, PlanningOracle] = {
    "milp occupancy": oracle("milp"),
    "milp aggregated": oracle("milp", formulation="aggregated"),
    "milp value": oracle("milp", formulation="value"),
    "milp-pulp HiGHS": oracle("milp-pulp"),
    "milp-pulp CBC": oracle("milp-pulp", solver="CBC"),
}


def spiky(rng: np.random.Generator) -> tuple[StationaryPolicies, Floats]:
    """A small domain with chances of all sizes, and normal costs `[t, s, a]`."""
    steps, states, actions = int(rng.integers(3, 11)), int(rng.integers(2, 5)), int(rng.integers(2, 4))
    concentration = np.exp(rng.uniform(np.log(0.005), np.log(0.2)))
    rows = rng.dirichlet(np.full(states, concentration), size=(states, actions))
    return StationaryPolicies(Kernel.homogeneous(rows, steps)), rng.normal(size=(steps, states, actions))


def lies(plan: Plan, domain: StationaryPolicies, cost: Floats) -> list[str]:
    """What is not true about a plan."""
    best = plain_optimum(domain, cost)
    slack = TRUE * len(cost) * np.abs(cost).max()
    found = []
    if plan.bound > best + slack:
        found.append(f"bound {plan.bound:.12g} above the optimum {best:.12g}")
    if plan.status is Status.OPTIMAL and plan.objective > best + slack:
        found.append(f"optimal {plan.objective:.12g} above the optimum {best:.12g}")
    paid = plain_costs(domain, cost, plan.actions[None])[0]
    if abs(plan.objective - paid) > slack:
        found.append(f"objective {plan.objective:.12g} of a policy that costs {paid:.12g}")
    return found


def counted(numbers: Sequence[int]) -> Counter[str]:
    """What came of the cases with these numbers, by program."""
    counts: Counter[str] = Counter()
    names = list(PROGRAMS)
    for number in numbers:
        name = names[number % len(names)]
        domain, cost = spiky(np.random.default_rng([SEED, number]))
        plan = bind(PROGRAMS[name], domain).minimize(cost[None])[0]
        counts[f"{name}: cases"] += 1
        counts[f"{name}: {plan.status}"] += 1
        for kind in ("rejected", "not confirmed"):
            counts[f"{name}: {kind}"] += kind in plan.report.note
        for lie in lies(plan, domain, cost):
            counts[f"{name}: lies"] += 1
            print(f"case {number}, {name}: {lie}", flush=True)
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, block by block, and print what was counted."""
    parser = ArgumentParser(prog="python -m benchmarks.studies.spiky", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=20_000)
    asked = parser.parse_args(arguments)
    asked.folder.mkdir(parents=True, exist_ok=True)
    total: Counter[str] = Counter()
    for first in range(0, asked.cases, BLOCK):
        last = min(asked.cases, first + BLOCK)
        total += _block(asked.folder / f"{first}-{last}.json", range(first, last))
        print(f"{last}/{asked.cases}", flush=True)
    for key in sorted(total):
        print(f"{key} {total[key]}")
    told = sum(count for key, count in total.items() if key.endswith("lies"))
    print(f"lies {told}")
    return 1 if told else 0


def _block(file: Path, numbers: Sequence[int]) -> Counter[str]:
    if not file.exists():
        unfinished = file.with_suffix(".part")
        unfinished.write_text(json.dumps(counted(numbers)))
        unfinished.replace(file)  # a file that is there is whole
    return Counter(json.loads(file.read_text()))


if __name__ == "__main__":
    raise SystemExit(main())
