"""What ``accelerate`` prints: a decision, a sentence, and how much longer where it is open."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.golden.synthetic import experiment, plan

from pgdyno.app import wiring
from pgdyno.app.accelerate import Acceleration
from pgdyno.app.accelerate_attached import AttachedAcceleration
from pgdyno.cli.accelerate import _print
from pgdyno.cli.main import cli
from pgdyno.experiments.plan_decision import PlanDecision, PlanState
from pgdyno.model.errors import UsageError
from pgdyno.model.verdict import Verdict
from pgdyno.server.account import caller

OPEN = PlanDecision(PlanState.UNDECIDED, "It is not decided.", ("why",), rounds_to_decide=6)


def result(decision: PlanDecision = OPEN, *verdicts: Verdict) -> AttachedAcceleration:
    measured = experiment()
    names = dict.fromkeys(verdict.variant for verdict in verdicts)
    variants = (*measured.variants, *(replace(measured.variants[1], name=name) for name in names))
    measured = replace(measured, variants=variants, verdicts=(*measured.verdicts, *verdicts))
    return AttachedAcceleration(Acceleration(plan(), decision, measured), None, None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path))
    monkeypatch.setattr(wiring, "current_account", caller)


def minutes_per_round() -> float:
    """Return the time between the rounds of the synthetic experiment, by its blocks' own clock."""
    starts = sorted({block.round: block.started_ns for block in reversed(experiment().blocks)}.values())
    return (starts[-1] - starts[0]) / (len(starts) - 1) / 60e9


def test_json_has_the_state_in_one_field(capsys: pytest.CaptureFixture[str]) -> None:
    _print(result(), is_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["decision"]["state"] == "undecided"
    assert document["decision"]["sentence"] == "It is not decided."
    assert document["decision"]["minutes_to_decide"] == pytest.approx(6 * minutes_per_round())
    assert (document["is_accepted"], document["reasons"]) == (False, ["why"])


@pytest.mark.usefixtures("home")
def test_what_is_open_says_which_budget_would_decide(capsys: pytest.CaptureFixture[str]) -> None:
    _print(result(), is_json=False)
    said = capsys.readouterr().out
    assert "\nIt is not decided.\nAbout " in said
    assert " more minutes would tell: --budget " in said


@pytest.mark.usefixtures("home")
def test_what_is_decided_says_so_and_nothing_of_time(capsys: pytest.CaptureFixture[str]) -> None:
    _print(result(PlanDecision(PlanState.PAYS, "The plan pays: …", ())), is_json=False)
    said = capsys.readouterr().out
    assert "The plan pays: …" in said
    assert "more minutes" not in said


@pytest.mark.usefixtures("home")
def test_layers_that_were_left_out_in_turn_have_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    of_plan = next(one for one in experiment().verdicts if one.metric == "throughput_tps")
    _print(result(OPEN, replace(of_plan, variant="without-system")), is_json=False)
    said = capsys.readouterr().out
    assert "What each layer is worth: throughput against default" in said
    assert "  without-system  sysbench-read-only" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seed", "-1"], "'--seed': -1 is not in the range x>=0"),
        (["--budget", "soon"], "soon"),
        (["--min-gain", "much"], "much"),
        (["--layers", "kernel"], 'no layer "kernel"'),
        (["--scale", "0"], "'--scale': 0 is not in the range x>=1"),
    ],
)
def test_odd_values_are_refused_before_anything_is_loaded(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["accelerate", "--embedded", *arguments])
    assert done.exit_code == 2 or isinstance(done.exception, UsageError)
    assert said in f"{done.output}{done.exception}"


@pytest.mark.parametrize("option", ["--allow-load", "--allow-restart", "--yes", "--tail watch"])
def test_what_an_owner_allows_concerns_a_running_server(option: str) -> None:
    done = CliRunner().invoke(cli, ["accelerate", "--embedded", *option.split()])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(f"{option} concerns a running server, and none was named")
