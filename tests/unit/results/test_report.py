"""Reports and bundles as files."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.synthetic import experiment
from tests.golden.synthetic_steps import experiment as of_ten_steps
from tests.golden.synthetic_workers import experiment as of_workers
from tests.unit.report.plan_of_parts import composed
from tests.unit.store.privacy.test_portable_facts import PRIVATE, SECRETS, planted

from pgdyno.model.experiments.slices import Slice
from pgdyno.results.bundle import export_bundle, portable_experiment, verify_bundle
from pgdyno.results.report import file_name, write_report


def no_slices(_workload: str, _round: int, _index: int) -> Sequence[Slice]:
    return [Slice(0, 1, 2, (3, 4))]


def test_report_is_one_file_without_secrets(tmp_path: Path) -> None:
    path = write_report(planted(), tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert not [secret for secret in SECRETS if secret in page]


def test_report_lies_beside_the_experiments_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path))
    path = write_report(experiment())
    assert path.name == "pgdyno-2026-11-21-0930-duet-7f3a.html"
    assert tmp_path in path.parents


def test_names_of_files_hold_no_surprises() -> None:
    assert file_name("../../etc/x y") == "pgdyno-_.._etc_x_y"


def test_exported_bundle_is_intact_and_holds_the_portable_experiment(tmp_path: Path) -> None:
    found = verify_bundle(export_bundle(experiment(), tmp_path / "b.zip", slices_of=no_slices))
    assert found.problems == ()
    assert found.experiment == portable_experiment(experiment())
    assert [file.name for file in found.files] == [
        "README.txt",
        "blocks.csv",
        "experiment.json",
        "experiment.schema.json",
        "report.html",
        "slices.csv",
        "SHA256SUMS",
    ]


def test_bundle_of_what_was_put_together_names_the_experiments_with_the_blocks(tmp_path: Path) -> None:
    path = export_bundle(composed(), tmp_path / "b.zip")
    with zipfile.ZipFile(path) as archive:
        readme = archive.read(
            next(name for name in archive.namelist() if name.endswith("README.txt"))
        ).decode()
    assert (
        "This experiment combines others, which have their own bundles with blocks and series: "
        "20261122-1, 20261122-2." in readme
    )
    assert verify_bundle(path).problems == ()


def test_bundle_without_slices_says_nothing_of_them(tmp_path: Path) -> None:
    path = export_bundle(experiment(), tmp_path / "b.zip")
    with zipfile.ZipFile(path) as archive:
        readme = archive.read("pgdyno-2026-11-21-0930-duet-7f3a/README.txt").decode()
        assert not [name for name in archive.namelist() if "slices" in name]
    assert "slices" not in readme
    assert "Is the planned configuration faster than the default one?" in readme


def readme_of(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith("/README.txt")]
        return archive.read(name).decode()


def test_a_bundle_with_a_query_of_the_users_own_says_that_it_is_in_it(tmp_path: Path) -> None:
    query = "SELECT count(*) FROM patients WHERE born = '1962-03-09'"
    measured = replace(of_workers(), options={"query": query}, notes=(f"the query: {query}",))
    path = export_bundle(measured, tmp_path / "query.zip")
    assert (
        "databases were left out.\n\n"
        "The bundle contains the measured query verbatim, with its constants and the names of tables and "
        "columns: in\n"
        "experiment.json (options.query, notes) and in report.html. Only what is listed above was removed "
        "from it,\n"
        "where it was recognised. Read it before you pass the bundle on.\n\n"
        "Written by"
    ) in readme_of(path)
    with zipfile.ZipFile(path) as archive:
        for name in ("experiment.json", "report.html"):
            (member,) = [one for one in archive.namelist() if one.endswith(f"/{name}")]
            assert "1962-03-09" in archive.read(member).decode()
    without = readme_of(export_bundle(of_workers(), tmp_path / "without.zip"))
    assert "query" not in without
    assert "databases were left out.\nWritten by" in without


def test_exporting_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    one = export_bundle(experiment(), tmp_path / "1.zip", slices_of=no_slices).read_bytes()
    assert one == export_bundle(experiment(), tmp_path / "2.zip", slices_of=no_slices).read_bytes()


def test_no_file_of_a_bundle_holds_anything_planted(tmp_path: Path) -> None:
    path = export_bundle(planted(), tmp_path / "b.zip", slices_of=no_slices)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            content = archive.read(name).decode()
            assert not [planted_ for planted_ in (*SECRETS, *PRIVATE) if planted_ in content], name


def test_a_bundle_whose_experiment_contradicts_itself_is_not_verified(tmp_path: Path) -> None:
    first, *others = experiment().blocks
    arm, other = first.arms
    below = replace(arm, values={**arm.values, "throughput_tps": -5.0})
    blocks = (replace(first, arms=(below, other)), *others)
    path = export_bundle(replace(experiment(), blocks=blocks), tmp_path / "b.zip")
    assert verify_bundle(path).problems == (
        f"block 1 of round 1 of {first.workload}: throughput_tps of default is -5, below 0",
    )


def test_bundle_lands_in_the_current_directory_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert export_bundle(experiment()) == Path("pgdyno-2026-11-21-0930-duet-7f3a.zip")
    assert (tmp_path / "pgdyno-2026-11-21-0930-duet-7f3a.zip").exists()


def test_bundle_of_steps_holds_their_series_and_says_so(tmp_path: Path) -> None:
    path = export_bundle(of_ten_steps(), tmp_path / "b.zip")
    found = verify_bundle(path)
    assert found.problems == ()
    assert found.experiment == portable_experiment(of_ten_steps())
    assert {"steps.csv", "intervals.csv"} <= {file.name for file in found.files}
    with zipfile.ZipFile(path) as archive:
        readme = archive.read("pgdyno-20261121-140312-insert-benchmark/README.txt").decode()
    assert "steps.csv                every step" in readme
    assert "intervals.csv            every step over time" in readme
