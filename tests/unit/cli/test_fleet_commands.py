"""``pgdyno fleet run``, and ``report`` of a fleet: refusals before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.golden.synthetic_fleet import fleet

from pgdyno.cli.main import main
from pgdyno.results.bundle import export_bundle
from pgdyno.results.fleets.run_fleet import fleet_directory
from pgdyno.store.fleet_file import read_fleet_file

pytestmark = pytest.mark.usefixtures("own_home")

COMPARE = "compare default more:work_mem=8MB --workload pgbench-select --embedded"
SCHEDULER = ("--scheduler", "tcp://127.0.0.1:1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return ordered(tmp_path, f"pgdyno {COMPARE} --budget 30m")


def ordered(tmp_path: Path, command: str) -> Path:
    path = tmp_path / "three.toml"
    path.write_text(f"command = '''{command}'''\n[machines.db1]\n[machines.db2]\n")
    return path


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["fleet", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "no machine to measure on was named  (PGD-100)"),
        (("--here", "db1", *SCHEDULER), "--here excludes --scheduler  (PGD-100)"),
        (("--here", "db9"), 'the fleet "three" has no machine "db9"  (PGD-100)\nDETAIL:  it has db1, db2'),
    ],
)
def test_who_measures_has_to_be_said_once(
    file: Path, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = failure(capsys, "run", str(file), *options)
    assert code == 2
    assert said in error


def test_files_for_tls_go_together_and_are_there(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = failure(capsys, "run", str(file), *SCHEDULER, "--tls", str(file), str(file))
    assert code == 2
    assert "Option '--tls' requires 3 arguments" in error
    none = str(file.parent / "none.key")
    code, error = failure(capsys, "run", str(file), *SCHEDULER, "--tls", str(file), str(file), none)
    assert code == 2
    assert "none.key' does not exist" in error


def test_root_unpickles_no_workers_answer(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    code, error = failure(capsys, "run", str(file), *SCHEDULER)
    assert code == 4
    assert error == (
        "pgdyno: ERROR:  fleet run --scheduler cannot run as root  (PGD-200)\n"
        "DETAIL:  a worker returns a Python object, which could run programs here\n"
        "HINT:  run it as the user of the scheduler and workers, or as another user: docs/guides/fleets.md\n"
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"{COMPARE} --bugdet 5m", "invalid command in the fleet file: No such option"),
        (f"{COMPARE} --budget soon", '--budget "soon" is not a duration'),
        (f"{COMPARE} --gate --json", 'the command of "FILE" must not contain --gate or --json'),
        (f"{COMPARE} --resume x", 'the command of "FILE" must not contain --resume'),
        ("run --bugdet", "invalid command in the fleet file: No such option"),
    ],
)
def test_a_command_that_would_fail_on_all_machines_is_refused_here(
    tmp_path: Path, command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ordered(tmp_path, command)
    code, error = failure(capsys, "run", str(file), "--here", "db1")
    assert code == 2
    assert error.replace(str(file), "FILE").startswith(f"pgdyno: ERROR:  {said}")


def test_a_fleet_without_bundles_has_no_report(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = failure(capsys, "report", str(file))
    assert code == 2
    assert 'the fleet "three" has no bundles yet' in error
    assert f"HINT:  measure its machines: pgdyno fleet run {file}" in error


def test_a_fleet_is_reported_by_its_machines_names(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = read_fleet_file(file)
    fleet_directory(order).mkdir()
    for machine, experiment in zip(order.machines, fleet(2), strict=True):
        export_bundle(experiment, fleet_directory(order) / order.bundle_name(machine))
    main(["fleet", "report", str(file)])
    said = capsys.readouterr().out
    assert said.startswith("2 machines, 2 experiments\n\nThe machines  processor ")
    assert "\ndb1           Example CPU 9001  " in said
    assert f"\ndb2              {order.bundle_name('db2')}  on-2 " in said
