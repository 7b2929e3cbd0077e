"""What ``tune`` prints: trials as they end, the answer, and its proof."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.golden.synthetic import experiment, plan
from tests.golden.synthetic_tuning import tuning

from pgdyno.cli.tune import _print, _Printer
from pgdyno.tune.tuner import Tuned


@pytest.fixture(autouse=True)
def home(own_home: Path) -> Path:
    return own_home


def test_what_happens_is_said_on_stderr_in_its_order(capsys: pytest.CaptureFixture[str]) -> None:
    found, spoken = tuning(), _Printer()
    spoken.tried(found.trials[0])
    spoken.left_out(found.removals[0])
    spoken.answered(found)
    said = capsys.readouterr().err
    words = ("trial 1: ", " without ", "Search 20261121-090000-tune")
    first, second, third = map(said.index, words)
    assert first < second < third


def test_the_answer_is_said_again_with_its_proof_and_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    _print(Tuned(tuning(), plan(), experiment()), is_json=False)
    said = capsys.readouterr().out
    words = ("Search 20261121-090000-tune", "New measurement, against", "\nReport: ")
    answer, proof, report = map(said.index, words)
    assert answer < proof < report


def test_json_has_the_search_and_its_proof(capsys: pytest.CaptureFixture[str]) -> None:
    _print(Tuned(tuning(), plan(), experiment()), is_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["tuning"]["id"] == "20261121-090000-tune"
    assert document["experiment"] == experiment().id
    assert document["attribution"] == []


def test_without_a_proof_the_answer_is_last(capsys: pytest.CaptureFixture[str]) -> None:
    _print(Tuned(tuning(), plan(), None), is_json=False)
    said = capsys.readouterr().out
    assert "Search 20261121-090000-tune" in said
    assert "New measurement" not in said
    assert "Report: " not in said
