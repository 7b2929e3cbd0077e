"""``pgdyno bundle compare``: its arguments, what it prints, and what it refuses."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.golden.synthetic import READ_ONLY, experiment
from tests.unit.results.machines.test_machine_comparison import faster

from pgdyno.cli.main import main
from pgdyno.results.bundle import export_bundle, portable_experiment
from pgdyno.store.bundle import pack_bundle
from pgdyno.store.documents import dump_experiment

PRICES = "HINT:  write for example --price A=0.35 --price B=0.28, in dollars per hour"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))


@pytest.fixture
def bundles(tmp_path: Path) -> tuple[str, str]:
    a = export_bundle(experiment(), tmp_path / "a.zip")
    b = export_bundle(faster(experiment()), tmp_path / "b.zip")
    return str(a), str(b)


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run the command; return its exit code and what it said."""
    with pytest.raises(SystemExit) as caught:
        main(["bundle", "compare", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


def test_the_table_says_who_is_better_where_and_what_else_differs(
    bundles: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["bundle", "compare", *bundles, "--price", "A=0.5", "--price", "B=0.25"])
    said = capsys.readouterr().out
    assert "B  Example CPU 9000 @ 2.60GHz, 8 CPUs, PostgreSQL 18.6, $0.25 per hour (faster)" in said
    assert "Throughput: B is better on sysbench-read-only, default (+" in said
    assert "Transactions per $" in said
    assert "The machines" in said
    assert "Unknown on one side or both, possibly different" in said


def test_json_holds_ratio_interval_and_sources(
    bundles: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["bundle", "compare", *bundles, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1
    found = document["comparison"]
    first = found["metrics"][0]
    assert (first["workload"], first["variant"], first["metric"]) == (READ_ONLY, "default", "throughput_tps")
    assert (first["verdict"]["variant"], first["verdict"]["baseline"]) == ("B", "A")
    assert first["verdict"]["interval"]["low"] < 1.5 < first["verdict"]["interval"]["high"]
    assert [side["experiment"] for side in found["sides"]] == [experiment().id, "faster"]
    assert all(one["source"] and one["reason"] for one in found["differences"])


def test_stored_experiments_are_compared_by_their_ids(
    bundles: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["bundle", "import", bundles[1]])
    main(["bundle", "compare", bundles[0], "faster", "--json"])
    out = capsys.readouterr().out
    by_id = json.loads(out[out.index("{") :])
    main(["bundle", "compare", *bundles, "--json"])
    assert by_id == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        (["C=1"], '--price "C=1" names neither A nor B'),
        (["0.35"], '--price "0.35" names neither A nor B'),
        (["A=free"], '--price "A=free": "free" is not a price in dollars'),
        (["A=0"], '--price "A=0": "0" is not a price in dollars'),
        (["A=-1"], '--price "A=-1": "-1" is not a price in dollars'),
        (["A=inf"], '--price "A=inf": "inf" is not a price in dollars'),
        (["A=0.35"], "--price was given only for A"),
    ],
)
def test_prices_have_to_be_prices_of_both(
    bundles: tuple[str, str], prices: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [word for price in prices for word in ("--price", price)]
    code, text = failure(capsys, *bundles, *options)
    assert code == 2
    assert text == f"pgdyno: ERROR:  {said}  (PGD-100)\n{PRICES}\n"


def test_a_bundle_that_was_tampered_with_is_refused_with_the_reason(
    bundles: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rate is multiplied in the document, and the list of checksums is kept."""
    forged = tmp_path / "forged.zip"
    with zipfile.ZipFile(bundles[1]) as before, zipfile.ZipFile(forged, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            after.writestr(name, content.replace(b'"throughput_tps": ', b'"throughput_tps": 9'))
    code, text = failure(capsys, bundles[0], str(forged))
    assert code == 1
    assert text.startswith(f'pgdyno: ERROR:  the bundle "{forged}" is refused: 1 problem')
    assert "DETAIL:  experiment.json was changed: its SHA-256 is " in text


def test_figures_that_cannot_be_are_told_in_words(
    bundles: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hypervisor that gave time back, for example: checksums and schema are right."""
    other = faster(experiment())
    blocks = tuple(replace(one, audit={**one.audit, "steal_share": -1e300}) for one in other.blocks)
    absurd = tmp_path / "absurd.zip"
    document = dump_experiment(portable_experiment(replace(other, blocks=blocks)))
    absurd.write_bytes(pack_bundle("x", {"experiment.json": json.dumps(document).encode()}))
    code, said = failure(capsys, bundles[0], str(absurd))
    assert code == 1
    assert said.startswith(
        "pgdyno: ERROR:  could not render a report of these experiments  (PGD-500)\nDETAIL:  "
    )


def test_a_bundle_of_a_newer_pgdyno_says_what_to_do(
    bundles: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = tmp_path / "newer.zip"
    document = {**dump_experiment(experiment()), "schema_version": 2, "rounds": "now something else"}
    newer.write_bytes(pack_bundle("x", {"experiment.json": json.dumps(document).encode()}))
    code, said = failure(capsys, bundles[0], str(newer))
    assert code == 1
    assert said == (
        f'pgdyno: ERROR:  the bundle "{newer}" is refused: 2 problems  (PGD-500)\n'
        "DETAIL:  experiment.json: the document has schema version 2\n"
        "experiment.json: this pgdyno reads versions up to 1\n"
        "HINT:  upgrade pgdyno: pip install --upgrade pgdyno\n"
    )


def test_another_workload_is_refused_as_usage(
    bundles: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    larger = replace(faster(experiment()), scales={READ_ONLY: 400, "sysbench-read-write": 4})
    path = export_bundle(larger, tmp_path / "larger.zip")
    code, said = failure(capsys, bundles[0], str(path))
    assert code == 2
    assert said == (
        "pgdyno: ERROR:  A and B did not run the same workload  (PGD-100)\n"
        "DETAIL:  sysbench-read-only: scale of the data set: 4 on A, 400 on B\n"
        "HINT:  run the same command with the same options on both machines\n"
    )


@pytest.mark.parametrize(
    ("missing", "what"), [("gone.zip", 'could not open "gone.zip"'), ("x", 'no experiment "x"')]
)
def test_what_is_not_there_is_named(
    bundles: tuple[str, str], missing: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = failure(capsys, bundles[0], missing)
    assert code == 1
    assert text.startswith(f"pgdyno: ERROR:  {what}")
