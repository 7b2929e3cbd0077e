"""What ``accelerate`` prints: a decision, a sentence, and how much longer where it is open."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.golden.synthetic import experiment, plan
from tests.golden.synthetic_layers import experiment as with_layers

from pgdyno.accelerate.attached_server import AttachedAcceleration
from pgdyno.accelerate.request import Acceleration, BuildAdvice
from pgdyno.base.errors import UsageError
from pgdyno.cli._acceleration import print_acceleration
from pgdyno.cli.main import cli
from pgdyno.measure.decisions.plan_decision import PlanDecision, PlanState
from pgdyno.model.variants.variant import Variant

OPEN = PlanDecision(PlanState.UNDECIDED, "It is not decided.", ("why",), rounds_to_decide=6)


def result(decision: PlanDecision = OPEN) -> AttachedAcceleration:
    return AttachedAcceleration(Acceleration(plan(), decision, experiment()), None, None)


@pytest.fixture
def home(own_home: Path) -> Path:
    return own_home


def minutes_per_round() -> float:
    """Return the time between the rounds of the synthetic experiment, by its blocks' own clock."""
    starts = sorted({block.round: block.started_ns for block in reversed(experiment().blocks)}.values())
    return (starts[-1] - starts[0]) / (len(starts) - 1) / 60e9


def test_json_has_the_state_in_one_field(capsys: pytest.CaptureFixture[str]) -> None:
    print_acceleration(result(), is_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["decision"]["state"] == "undecided"
    assert document["decision"]["sentence"] == "It is not decided."
    assert document["decision"]["minutes_to_decide"] == pytest.approx(6 * minutes_per_round())
    assert (document["is_accepted"], document["reasons"]) == (False, ["why"])
    decision = document["decision"]
    assert (decision["variant"], decision["is_accepted"], decision["reasons"]) == ("plan", False, ["why"])
    assert document["without_per_application"] is None


def test_json_has_the_decision_on_what_is_applied_in_the_same_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The part has the figures of "without-application": 1.25 and 0.93 times the baseline.
    name, base = "without-plan_cache_mode", with_layers()
    blocks = tuple(
        replace(block, arms=(*block.arms, *(replace(arm, variant=name) for arm in block.arms[2:3])))
        for block in base.blocks
    )
    assert base.blocks[0].arms[2].variant == "without-application"
    found = replace(base, variants=(*base.variants, Variant(name)), blocks=blocks)
    pays = PlanDecision(PlanState.PAYS, "The plan pays.", ())
    print_acceleration(AttachedAcceleration(Acceleration(plan(), pays, found), None, None), is_json=True)
    document = json.loads(capsys.readouterr().out)
    part = document["without_per_application"]
    assert (part["variant"], part["settings"]) == (name, ["plan_cache_mode"])
    assert (part["state"], part["is_accepted"]) == ("slower somewhere", False)
    assert part["sentence"].startswith("The plan does not pay, a workload is slower: throughput +25.")
    assert part["reasons"][0].startswith("sysbench-read-only: throughput +25.")
    assert set(document["decision"]) == set(part) - {"settings"}
    assert (document["decision"]["is_accepted"], document["is_accepted"]) == (True, True)


@pytest.mark.usefixtures("home")
def test_what_is_open_says_which_budget_would_decide(capsys: pytest.CaptureFixture[str]) -> None:
    print_acceleration(result(), is_json=False)
    said = capsys.readouterr().out
    assert re.search(r"\nIt is not decided\.\n(About|Less)", said)
    assert " would decide: --budget " in said


@pytest.mark.usefixtures("home")
def test_what_is_decided_says_so_and_nothing_of_time(capsys: pytest.CaptureFixture[str]) -> None:
    print_acceleration(result(PlanDecision(PlanState.PAYS, "The plan pays: …", ())), is_json=False)
    said = capsys.readouterr().out
    assert "The plan pays: …" in said
    assert "more minutes" not in said


@pytest.mark.usefixtures("home")
def test_what_a_build_would_bring_is_said_last_and_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    advice = BuildAdvice("pgdyno build --source debian:18", 26, 0.3, "")
    advised = AttachedAcceleration(Acceleration(plan(), OPEN, experiment(), advice), None, None)
    print_acceleration(advised, is_json=False)
    assert f"\n\n{advice.sentence}\n\nReport: " in capsys.readouterr().out
    print_acceleration(advised, is_json=True)
    found = json.loads(capsys.readouterr().out)["build_advice"]
    assert (found["command"], found["minutes"], found["missing"]) == (advice.command, 26, None)


@pytest.mark.usefixtures("home")
def test_layers_that_were_left_out_in_turn_have_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_acceleration(
        AttachedAcceleration(Acceleration(plan(), OPEN, with_layers()), None, None), is_json=False
    )
    said = capsys.readouterr().out
    assert "The worth of each part, in throughput:" in said
    assert "  sysbench-read-only      application  +20" in said


def test_json_has_the_effects_of_layers_on_every_workload(capsys: pytest.CaptureFixture[str]) -> None:
    print_acceleration(
        AttachedAcceleration(Acceleration(plan(), OPEN, with_layers()), None, None), is_json=True
    )
    effects = json.loads(capsys.readouterr().out)["attribution"]
    assert [one["workload"] for one in effects] == ["sysbench-read-only", "sysbench-read-write"]
    assert effects[0]["parts"][0]["name"] == "application"
    assert effects[0]["parts"][0]["worth"]["point"] == pytest.approx(1.2, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seed", "-1"], "'--seed': -1 is not in the range x>=0"),
        (["--seed", "1.5"], "'--seed': '1.5' is not a valid integer range"),
        (["--budget", "soon"], '--budget "soon" is not a duration\nHINT:  write for example 8m, 90s'),
        (["--budget", "0"], '--budget "0" is not a duration'),
        (["--budget", "0m"], '--budget "0m" is not a duration'),
        (["--budget", "-5m"], '--budget "-5m" is not a duration'),
        (["--min-gain", "abc"], '--min-gain "abc" is not a percentage\nHINT:  write for example 5% or 0.5%'),
        (["--min-gain", "5"], '--min-gain "5" is not a percentage'),
        (["--min-gain", "-1%"], '--min-gain "-1%" is not a percentage'),
        (["--min-gain", "nan%"], '--min-gain "nan%" is not a percentage'),
        (
            ["--max-loss", "200%"],
            '--max-loss "200%" would let any plan pass\nHINT:  write a percentage below 100%',
        ),
        (["--max-loss", "100%"], '--max-loss "100%" would let any plan pass'),
        (["--max-loss", "-5%"], '--max-loss "-5%" is not a percentage'),
        (["--max-tail-loss", "-1%"], '--max-tail-loss "-1%" is not a percentage'),
        (["--max-tail-loss", "1"], '--max-tail-loss "1" is not a percentage'),
        (["--layers", "kernel"], 'no layer "kernel"'),
        (["--scale", "0"], "'--scale': 0 is not in the range x>=1"),
    ],
)
def test_odd_values_are_refused_before_anything_is_loaded(
    arguments: list[str], said: str, own_home: Path
) -> None:
    done = CliRunner().invoke(cli, ["accelerate", "--embedded", *arguments])
    assert done.exit_code == 2 or isinstance(done.exception, UsageError)
    assert said in f"{done.output}{done.exception}"
    assert not (own_home / "datasets").exists()


@pytest.mark.parametrize("option", ["--allow-load", "--allow-restart", "--yes", "--tail watch"])
def test_what_an_owner_allows_concerns_a_running_server(option: str) -> None:
    done = CliRunner().invoke(cli, ["accelerate", "--embedded", *option.split()])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(f"{option} requires a running server, and none was named")
