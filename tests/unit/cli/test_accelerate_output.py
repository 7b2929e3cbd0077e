"""What ``accelerate`` prints of a plan that was measured in parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.golden.synthetic import plan
from tests.unit.report.plan_of_parts import composed

from pgdyno.app import wiring
from pgdyno.app.accelerate import Acceleration
from pgdyno.app.accelerate_attached import AttachedAcceleration
from pgdyno.cli.accelerate import _print
from pgdyno.experiments.acceptance import Acceptance
from pgdyno.server.account import caller

REFUSED = Acceptance(is_accepted=False, reasons=("it may have lost",))
DONE = AttachedAcceleration(
    Acceleration(plan(), REFUSED, composed(), (), ("application", "plan")), None, None
)


def test_json_has_every_step_and_the_whole_and_how_each_was_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _print(DONE, is_json=True)
    document = json.loads(capsys.readouterr().out)
    assert [(one["experiment"], one["design"], one["variants"]) for one in document["parts"]] == [
        ("20261122-1", "duet", ["default", "application"]),
        ("20261122-2", "alternating", ["application", "plan"]),
    ]
    against = [(one["workload"], one["variant"], one["baseline"]) for one in document["layers"]]
    assert against == [
        (workload, variant, baseline)
        for variant, baseline in (("application", "default"), ("plan", "application"), ("plan", "default"))
        for workload in ("sysbench-read-only", "sysbench-read-write")
    ]


def test_the_terminal_has_them_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path))
    monkeypatch.setattr(wiring, "current_account", caller)
    _print(DONE, is_json=False)
    said = capsys.readouterr().out
    assert "The plan is not proven to pay: it may have lost." in said
    assert "Layer by layer, throughput of each against the one before:" in said
    assert "product of 2 parts" in said
