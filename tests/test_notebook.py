"""In a notebook: runs and reports are shown below the cell, with a line of progress while they last."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from experiments.specs import Here

import amdp
from amdp import notebook
from amdp.notebook import NotebookBar, in_notebook


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a kernel of Jupyter is told to show, each time it is told; progress is drawn without patience."""
    told: list[dict[str, Any]] = []

    def display(content: dict[str, str], *, raw: bool, display_id: str) -> None:
        assert raw
        told.append({"content": content, "id": display_id, "update": False})

    def publish(content: dict[str, str], *, transient: dict[str, str], update: bool) -> None:
        told.append({"content": content, "id": transient["display_id"], "update": update})

    shell, screen = ModuleType("IPython"), ModuleType("IPython.display")
    kernel = SimpleNamespace(kernel=object())
    vars(shell).update(get_ipython=lambda: kernel, display=screen, version_info=(9, 0))  # matplotlib reads it
    vars(screen).update(display=display, publish_display_data=publish)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", screen)
    monkeypatch.setattr(notebook, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(notebook, "REFRESH_SECONDS", 0.0)
    return told


def test_a_script_and_a_terminal_of_ipython_are_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
    shell = ModuleType("IPython")
    vars(shell).update(get_ipython=lambda: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert not in_notebook()


def test_a_run_shows_its_rounds_and_leaves_nothing(displayed: list[dict[str, Any]]) -> None:
    assert in_notebook()
    run = amdp.play(amdp.Game("tiny", rounds=40), "ftpl")
    assert run.rounds[-1] == 40
    first, *later = displayed
    assert not first["update"]
    assert all(shown["update"] and shown["id"] == first["id"] for shown in later), "one line, drawn anew"
    assert "ftpl: 40 of 40 rounds" in displayed[-2]["content"]["text/plain"]
    assert displayed[-1]["content"] == {"text/html": "", "text/plain": ""}


def test_no_progress_is_shown_where_none_is_wanted(displayed: list[dict[str, Any]]) -> None:
    amdp.play(amdp.Game("tiny", rounds=5), "uniform", progress=False)
    assert not displayed


def test_what_ends_soon_shows_nothing(displayed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "PATIENCE_SECONDS", 1e6)
    with NotebookBar() as bar:
        bar.show(1, 2, "half")
    assert not displayed


def test_texts_are_no_markup(displayed: list[dict[str, Any]]) -> None:
    with NotebookBar(keep=True) as bar:
        bar.show(1, 2, "<b>half</b>")
    assert "&lt;b&gt;half" in displayed[-1]["content"]["text/html"]
    assert displayed[-1]["content"]["text/plain"] == "<b>half</b>"


@pytest.mark.usefixtures("few_figures")
def test_a_comparison_shows_progress_regret_and_the_page(
    displayed: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amdp.comparison.LocalPool", Here)
    games = [{"instance": "tiny", "episodes": 6, "label": "<small>"}]
    results = amdp.compare(out=tmp_path / "runs", games=games, learners=["uniform", "fpl"], seeds=2, workers=1)
    assert displayed[-1]["content"]["text/plain"] == "4 of 4 runs"
    shown = results._repr_html_()
    assert "<table>" in shown
    assert all(word in shown for word in ("uniform", "fpl", "&lt;small&gt;"))
    written = results.report()
    page = written._repr_html_()
    assert page.startswith('<iframe srcdoc="')
    assert "data:image/svg+xml" in page
    assert "<table" not in page, "the page is quoted: its markup acts inside the frame only"
    assert repr(written) == f"{written.page}: {len(written.figures)} figure files, {len(written.tables)} table files"
