"""The site has a place for every page, its claims about the code are true, and what is built needs no network."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from amdp.experiments.spec import Spec
from amdp.verification import Check, checks
from amdp.verification.page import UNCHECKED

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAPER = (DOCS / "paper-and-code.md").read_text(encoding="utf-8")
STATEMENTS = 45  # numbered in one row, from Definition 1 to Lemma 45
KINDS = "Definition|Assumption|Lemma|Theorem|Remark|Corollary"
ROOMS = ("amdp", "amdp.model", "amdp.algorithms", "amdp.game", "amdp.losses")


def test_every_numbered_statement_of_the_paper_has_a_row() -> None:
    table = PAPER.partition("## Every numbered statement")[2].partition("## Errata")[0]
    rows = [int(number) for number in re.findall(rf"^\| (?:{KINDS}) (\d+) \|", table, re.MULTILINE)]
    assert rows == list(range(1, STATEMENTS + 1))


def test_checks_that_the_page_names_exist() -> None:
    table = PAPER.partition("## Every numbered statement")[2].partition("## Errata")[0]
    last_column = [row.rstrip(" |").rpartition("|")[2] for row in table.splitlines() if row.startswith("|")]
    named = {name for cell in last_column for name in re.findall(r"`([a-z-]+)`", cell)}
    assert named <= {check.name for check in checks()}


def by_number(place: str) -> list[str]:
    """The numbered statements among places of the paper."""
    return re.findall(rf"(?:{KINDS}) \d+(?![.\d])", place)


def test_the_two_pages_of_the_paper_agree_on_what_is_checked() -> None:
    """Both name a check for the same statements, and give a reason for each of the others."""
    verified = (DOCS / "verified.md").read_text(encoding="utf-8")
    listed = {check.name for check in checks()}
    sections = re.findall(r"^## ([a-z-]+)\n\n(.*?):", verified, re.MULTILINE)
    assert {name for name, _ in sections} == listed
    checked = {(number, name) for name, place in sections for number in by_number(place)}
    table = PAPER.partition("## Every numbered statement")[2].partition("## Errata")[0]
    rows = re.findall(rf"^\| ((?:{KINDS}) \d+) \|.*\|([^|]*)\|$", table, re.MULTILINE)
    assert {(number, name) for number, cell in rows for name in re.findall(r"`([a-z-]+)`", cell)} == checked
    assert listed - {name for _, name in checked} == set(re.findall(r"`([a-z-]+)` \(", table.partition("Text ")[2]))
    unchecked = re.findall(r"^- (.*?):", verified.partition("## What is not checked")[2], re.MULTILINE)
    without = [number for place in unchecked for number in by_number(place)]
    assert sorted([*without, *{number for number, _ in checked}]) == sorted(number for number, _ in rows)


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
def test_the_page_of_findings_states_each_check_as_the_code_does(check: Check) -> None:
    verified = (DOCS / "verified.md").read_text(encoding="utf-8")
    assert f"## {check.name}\n\n{check.statement[0].upper()}{check.statement[1:]}.\n" in verified
    assert all(f"- {place}: {why}.\n" in verified for place, why in UNCHECKED.items())


NUMBERS = {  # the paper's numbers of what the code speaks of
    "amdp/algorithms/ftpl/perturbed_leader.py": (
        "Algorithms 1, 3 and 4",
        "Theorems 4 and 6",
        *(f"Algorithm {n}" for n in (1, 3, 4)),
    ),
    "amdp/algorithms/bounds.py": ("Theorem 4", "Lemma 26"),
    "amdp/algorithms/streams/switching.py": ("Algorithm 5",),
    "amdp/algorithms/streams/epochs.py": ("Algorithm 6", "Algorithm 7", "section 5 and appendix D"),
}


def test_the_code_counts_as_the_paper_does() -> None:
    """Elsewhere numbers of statements and algorithms stand only in checks, which the pages are compared with."""
    numbered = r"\b(?:Theorem|Lemma|Algorithm|Corollary)s? \d+(?:(?:, | and )\d+)*|\bsection \d and appendix \w"
    for file in (ROOT / "amdp").rglob("*.py"):
        path = file.relative_to(ROOT).as_posix()
        if "verification" not in path:
            found = set(re.findall(numbered, file.read_text(encoding="utf-8")))
            assert found == set(NUMBERS.get(path, ())), path


def modules() -> dict[str, list[ModuleType]]:
    """Modules by the last part of their name, of the rooms that the page speaks of."""
    found: dict[str, list[ModuleType]] = {}
    for room in ROOMS:
        folder = ROOT / Path(*room.split("."))
        for path in folder.glob("*.py") if room == "amdp" else folder.rglob("*.py"):
            if path.stem not in ("__init__", "__main__", "environment", "cli"):
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                found.setdefault(path.stem, []).append(importlib.import_module(name))
    return found


def test_names_of_the_code_on_the_page_are_names_of_the_code() -> None:
    known: dict[str, list[Any]] = {**modules(), "amdp": [importlib.import_module("amdp")]}
    for module in [module for same in modules().values() for module in same]:
        known |= {name: [value] for name, value in vars(module).items() if isinstance(value, type)}
    dotted = re.findall(r"`([A-Za-z_]+)\.([A-Za-z_]+)\b", PAPER)
    checked = [(owner, name) for owner, name in dotted if owner in known]
    assert len(checked) > 40
    for owner, name in checked:
        assert any(hasattr(one, name) or name in getattr(one, "__dataclass_fields__", {}) for one in known[owner]), (
            f"{owner}.{name}"
        )


def test_examples_are_linked_from_the_pages_by_names_that_exist() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(\.\./(examples/[^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{page.name}: {target}"


def test_the_spec_of_the_tutorial_is_one() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "tutorial.md").read_text(encoding="utf-8"), re.DOTALL)
    spec = Spec.parse(text, "tutorial")
    # Games, learners; seeds, and the tries of three multipliers; then the baseline.
    assert len(spec.first()) == 2 * 2 * (5 + 3 * 2) + 2 * 5


def settings() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return read


def test_the_navigation_names_pages_that_exist() -> None:
    listed = re.findall(r"[\w-]+\.md", json.dumps(settings()["nav"]))
    assert len(listed) == len(set(listed))
    for page in listed:
        assert (DOCS / page).exists(), page


def test_the_site_asks_nobody_for_fonts_or_scripts() -> None:
    assert settings()["theme"]["font"] is False
    assert settings()["strict"] is True
    for asset in settings()["extra"]["polyfills"] + settings()["extra_css"]:
        assert (DOCS / asset).exists(), asset


@pytest.mark.slow
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    loads = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?(https?:|//)")
    for page in tmp_path.rglob("*.html"):
        text = re.sub(r"<link rel=\"?canonical[^>]*>", "", page.read_text(encoding="utf-8"))
        assert not loads.search(text), page.name
    for style in tmp_path.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:|//)|@import", style.read_text(encoding="utf-8")), style.name
    built = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")}
    assert {
        "index.html",
        "examples/tour.html",
        "reference/algorithms/ftpl/perturbed_leader.html",
        "reference/commands.html",
    } <= built
