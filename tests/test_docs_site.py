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
from amdp.verification.catalog import checks

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAPER = (DOCS / "paper-and-code.md").read_text(encoding="utf-8")
STATEMENTS = 45  # numbered in one row, from Definition 1 to Lemma 45
ROOMS = ("amdp", "amdp.algorithms", "amdp.losses")


def test_every_numbered_statement_of_the_paper_has_a_row() -> None:
    table = PAPER.partition("## Every numbered statement")[2].partition("## Errata")[0]
    kinds = "Definition|Assumption|Lemma|Theorem|Remark|Corollary"
    rows = [int(number) for number in re.findall(rf"^\| (?:{kinds}) (\d+) \|", table, re.MULTILINE)]
    assert rows == list(range(1, STATEMENTS + 1))


def test_checks_that_the_page_names_exist() -> None:
    table = PAPER.partition("## Every numbered statement")[2].partition("## Errata")[0]
    last_column = [row.rstrip(" |").rpartition("|")[2] for row in table.splitlines() if row.startswith("|")]
    named = {name for cell in last_column for name in re.findall(r"`([a-z-]+)`", cell)}
    assert named <= {check.name for check in checks()}


def modules() -> dict[str, ModuleType]:
    """Modules by the last part of their name, of the rooms that the page speaks of."""
    found = {}
    for room in ROOMS:
        folder = ROOT / Path(*room.split("."))
        for path in folder.glob("*.py"):
            if path.stem not in ("__init__", "__main__", "environment", "cli"):
                found[path.stem] = importlib.import_module(f"{room}.{path.stem}")
    return found


def test_names_of_the_code_on_the_page_are_names_of_the_code() -> None:
    known = modules()
    classes = {
        name: value for module in known.values() for name, value in vars(module).items() if isinstance(value, type)
    }
    owners: dict[str, Any] = {**known, **classes, "amdp": importlib.import_module("amdp")}
    dotted = re.findall(r"`([A-Za-z_]+)\.([A-Za-z_]+)\b", PAPER)
    checked = [(owner, name) for owner, name in dotted if owner in owners]
    assert len(checked) > 40
    for owner, name in checked:
        fields = getattr(owners[owner], "__dataclass_fields__", {})
        assert hasattr(owners[owner], name) or name in fields, f"{owner}.{name}"


def test_examples_are_linked_from_the_pages_by_names_that_exist() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(\.\./(examples/[^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{page.name}: {target}"


def test_the_spec_of_the_tutorial_is_one() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "tutorial.md").read_text(encoding="utf-8"), re.DOTALL)
    spec = Spec.parse(text, "tutorial")
    assert len(spec.first()) == 2 * 2 * (5 + 3 * 2)  # games, learners; seeds, and the tries of three multipliers


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
    assert {"index.html", "examples/tour.html", "reference/algorithms/ftpl.html", "reference/commands.html"} <= built
