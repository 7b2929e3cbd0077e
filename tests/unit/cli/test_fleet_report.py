"""``pgdyno fleet report``: its arguments, what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.golden.synthetic import READ_ONLY
from tests.golden.synthetic_fleet import fleet

from pgdyno.cli.main import main
from pgdyno.results.bundle import export_bundle
from pgdyno.store.bundle import pack_bundle
from pgdyno.store.documents import dump_experiment


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))


@pytest.fixture
def bundles(tmp_path: Path) -> list[str]:
    return [str(export_bundle(one, tmp_path / f"{one.id}.zip")) for one in fleet()]


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["fleet", "report", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


def test_the_report_is_printed_and_written(
    bundles: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["fleet", "report", *bundles])
    said = capsys.readouterr().out
    assert said.startswith("5 machines, 5 experiments\n")
    assert "Across machines, better: plan on sysbench-read-only; not decided: plan on" in said
    page = tmp_path / "home" / "experiments" / "pgdyno-fleet-on-5.html"
    assert said.endswith(f"Report: {page}\n")
    assert "5 machines, 5 experiments" in page.read_text(encoding="utf-8")


def test_json_has_every_comparison_and_where_the_page_is(
    bundles: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    main(["fleet", "report", *bundles, "--json", "--output", str(page)])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (document["schema_version"], document["report"]) == (1, str(page))
    assert page.is_file()
    first = document["fleet"]["comparisons"][0]
    assert (first["workload"], first["variant"], first["metric"]) == (READ_ONLY, "plan", "throughput_tps")
    assert first["verdict"]["decision"] == "better"
    assert first["verdict"]["rounds"] == 5
    assert first["between"]["low"] <= first["between"]["sd"] <= first["between"]["high"]
    assert first["prediction"]["low"] < first["verdict"]["interval"]["low"]
    assert [one["machine"] for one in first["machines"]] == ["A", "B", "C", "D", "E"]
    assert document["fleet"]["machines"][0]["experiments"][0]["source"] == bundles[0]


def test_machines_have_the_names_that_they_are_given(
    bundles: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["fleet", "report", f"db1={bundles[0]}", f"db-2={bundles[1]}", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["fleet"]["machines"]] == ["db1", "db-2"]


def test_a_file_with_an_equals_sign_is_a_file(
    bundles: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = Path(bundles[0]).rename(tmp_path / "a=b.zip")
    main(["fleet", "report", str(odd), bundles[1], "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["fleet"]["machines"][0]["experiments"][0]["source"] == str(odd)


def test_stored_experiments_are_named_by_their_ids(
    bundles: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["bundle", "import", bundles[1]])
    capsys.readouterr()
    main(["fleet", "report", bundles[0], "on-2", "--json"])
    by_id = json.loads(capsys.readouterr().out)["fleet"]
    main(["fleet", "report", bundles[0], bundles[1], "--json"])
    by_file = json.loads(capsys.readouterr().out)["fleet"]
    assert by_id["comparisons"] == by_file["comparisons"]


def test_one_experiment_is_not_enough(bundles: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, said = failure(capsys, bundles[0])
    assert code == 2
    assert said == (
        "pgdyno: ERROR:  one experiment is not enough to combine machines  (PGD-100)\n"
        f"DETAIL:  given: {bundles[0]}\n"
        "HINT:  give experiments of at least two machines; run the same command with the same options on all "
        "machines\n"
    )


def test_a_bundle_twice_is_refused(bundles: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, said = failure(capsys, bundles[0], bundles[1], bundles[0])
    assert code == 2
    assert said.startswith(
        f"pgdyno: ERROR:  {bundles[0]} and {bundles[0]} are the same experiment  (PGD-100)\n"
    )


def test_a_bundle_of_a_newer_pgdyno_says_what_to_do(
    bundles: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = tmp_path / "newer.zip"
    document = {**dump_experiment(fleet(1)[0]), "schema_version": 2}
    newer.write_bytes(pack_bundle("x", {"experiment.json": json.dumps(document).encode()}))
    code, said = failure(capsys, bundles[0], str(newer))
    assert code == 1
    assert said.startswith(f'pgdyno: ERROR:  the bundle "{newer}" is refused: ')
    assert "HINT:  upgrade pgdyno: pip install --upgrade pgdyno\n" in said


@pytest.mark.parametrize(
    ("missing", "what"),
    [
        ("gone.zip", 'could not open "gone.zip"'),
        ("db1=gone.zip", 'could not open "gone.zip"'),
        ("x", 'no experiment "x"'),
    ],
)
def test_what_is_not_there_is_named(
    bundles: list[str], missing: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = failure(capsys, bundles[0], missing)
    assert code == 1
    assert said.startswith(f"pgdyno: ERROR:  {what}")
