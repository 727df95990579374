"""The study of losses that move, and regret against sequences in stored runs and the terminal."""

import json
from pathlib import Path

import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import amdp
from amdp.cli import app
from amdp.comparison import Results
from amdp.experiments.execution import execute
from amdp.experiments.spec import Spec
from amdp.experiments.storage import Store
from benchmarks.studies import moving_losses
from benchmarks.studies.beyond_table_1 import THREE

GAME = {"instance": "tiny", "episodes": 40, "losses": {"name": "switching", "every": 10}}


def test_stored_runs_have_the_dynamic_regret_of_runs_in_memory(tmp_path: Path) -> None:
    spec = Spec.from_dict({"games": [GAME], "learners": [{"name": "o-reps-full"}], "seeds": [3], "baseline": False})
    with Store(tmp_path) as store:
        for planned in spec.first():
            store.write(execute(planned.settings))
    found = Results(spec, tmp_path, None).dynamic(4)  # type: ignore[arg-type]
    run = amdp.play(amdp.Game("tiny", GAME["losses"], 40, seed=3), "o-reps-full", seed=3)  # type: ignore[arg-type]
    assert found["changes"].tolist() == [0, 1, 2, 3]
    assert_allclose(found["regret"], run.dynamic(4).against)


def test_the_terminal_shows_regret_against_changes() -> None:
    words = ["play", "tiny", "do-reps", "--losses", "switching", "--episodes", "40", "--changes", "3"]
    result = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    against = result["against_changes"]
    assert len(against) == 4
    assert against[0] == pytest.approx(result["regret"])
    assert sorted(against) == against
    assert "changes of the comparator" in CliRunner().invoke(app, words).stdout
    refused = CliRunner().invoke(app, ["play", "waiting-ring", "mdp-e", "--steps", "50", "--changes", "1"])
    assert refused.exit_code != 0


def test_a_study_of_moving_losses_measures_every_number_of_changes_and_restarts_pay_less() -> None:
    swap = moving_losses.Run("tiny", "swap", moving_losses.RESTARTED, 160, 1)
    restarted, plain = swap.measured(), moving_losses.Run("tiny", "swap", "o-reps-full", 160, 1).measured()
    assert list(restarted) == [str(changes) for changes in moving_losses.CHANGES]
    assert restarted["7"] < plain["7"]
    found = {run: dict.fromkeys(restarted, float(run.seed)) for run in moving_losses.runs(160, 3)}
    rows = moving_losses.table(found)[2:]
    assert len(rows) == len(THREE) * len(moving_losses.ADVERSARIES) * len(moving_losses.LEARNERS)
    assert all(row.count("| 2 ± 1 ") == len(moving_losses.CHANGES) for row in rows)
