"""``pgdyno fleet plan``, ``run``, ``status`` and ``report`` of a fleet: words, documents, refusals."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from pgdyno.cli.main import main

pytestmark = pytest.mark.usefixtures("own_home")

COMPARE = "compare default more:work_mem=8MB --workload pgbench-select --embedded"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return ordered(tmp_path, f"pgdyno {COMPARE} --budget 30m")


def ordered(tmp_path: Path, command: str) -> Path:
    path = tmp_path / "three.toml"
    path.write_text(
        f"command = '''{command}'''\ntrials = 2\n[machines.db1]\nprice_per_hour = 3\n[machines.db2]\n"
    )
    return path


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["fleet", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


def test_a_plan_has_time_and_price_before_anything_starts(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["fleet", "plan", str(file)])
    said = capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith(f"Fleet three: pgdyno {COMPARE} --budget 30m\n")
    rows = [" ".join(line.split()) for line in said.splitlines()]
    assert "db1 2 0 0 2 0 30 min 1 h 3.00" in rows
    assert "db2 2 0 0 2 0 30 min 1 h –" in rows
    assert "all 4 0 0 4 0 1 h 3.00" in rows
    assert "0 of 4 trials are done, about 1 h left." in rows
    assert rows[-1] == (
        "Times are those of the experiment's budget, without loading. Machines work beside each other."
    )


def test_status_is_one_document_with_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["fleet", "status", str(file), "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1
    fleet = document["fleet"]
    assert (fleet["name"], fleet["left_s"], fleet["is_measured"]) == ("three", 3600.0, False)
    assert fleet["machines"][0] == {
        "machine": "db1", "trials": 2, "done": 0, "measuring": 0, "failed": 0,
        "trial_s": 1800.0, "left_s": 3600.0, "cost": 3.0, "reason": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "it is not said who makes the trials  (PGD-100)"),
        (("--here", "db1", "--scheduler", "tcp://x:1"), "--here goes without --scheduler  (PGD-100)"),
        (("--here", "db9"), 'the fleet "three" has no machine "db9"  (PGD-100)\nDETAIL:  it has db1, db2'),
    ],
)
def test_who_makes_the_trials_has_to_be_said_once(
    file: Path, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = failure(capsys, "run", str(file), *options)
    assert code == 2
    assert said in error


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"{COMPARE} --bugdet 5m", "the fleet's command is not understood: No such option"),
        (f"{COMPARE} --budget soon", '--budget "soon" is not a duration'),
        (f"{COMPARE} --gate --json", 'the command of "FILE" has --gate and --json'),
        (f"{COMPARE} --resume x", 'the command of "FILE" has --resume'),
        ("run --bugdet", "the fleet's command is not understood: No such option"),
    ],
)
def test_a_command_that_would_fail_on_all_machines_is_refused_here(
    tmp_path: Path, command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ordered(tmp_path, command)
    code, error = failure(capsys, "plan", str(file))
    assert code == 2
    assert error.replace(str(file), "FILE").startswith(f"pgdyno: ERROR:  {said}")


def test_a_fleet_without_results_has_no_report(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = failure(capsys, "report", str(file))
    assert code == 2
    assert 'the fleet "three" has no results yet' in error
    assert (
        f"HINT:  pgdyno fleet run {file} makes its trials; pgdyno fleet status shows how far it is" in error
    )
    assert gc.isenabled()  # the report stops it while it reads
