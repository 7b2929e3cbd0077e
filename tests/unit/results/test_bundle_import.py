"""Bundles are taken in whole or not at all, and what was taken in is told from what was measured here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.golden.synthetic import READ_ONLY, experiment

from pgdyno.base.errors import StorageError, UsageError
from pgdyno.cli.main import main
from pgdyno.cli.report import command as report
from pgdyno.model.experiments.slices import Slice
from pgdyno.results.bundle import export_bundle, portable_experiment
from pgdyno.results.bundle_import import import_bundle
from pgdyno.results.report import write_report
from pgdyno.results.stored import list_stored, load_stored
from pgdyno.store.bundle import pack_bundle
from pgdyno.store.documents import dump_experiment
from pgdyno.store.experiments import open_store

ID = "2026-11-21-0930-duet-7f3a"
EARLIER = sorted((Path(__file__).parents[2] / "fixtures/bundles/earlier").glob("*.zip"))
CUT_OFF = Slice(1, 900, 1000, (7, 8))


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))


def slices_of(workload: str, round_: int, index: int) -> Sequence[Slice]:
    """Return two slices of one block, none of the others."""
    return [Slice(0, 1, 20, (3, 4)), CUT_OFF] if (workload, round_, index) == (READ_ONLY, 2, 1) else []


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return export_bundle(experiment(), tmp_path / "b.zip", slices_of=slices_of)


def stored_slices(round_: int, index: int) -> Sequence[Slice]:
    with closing(open_store()) as store:
        return store.slices(ID, READ_ONLY, round_, index)


def of_document(tmp_path: Path, changes: Mapping[str, object], **files: bytes) -> Path:
    """Return a bundle whose checksums are right and whose experiment has these members instead."""
    document = json.dumps({**dump_experiment(experiment()), **changes}).encode()
    path = tmp_path / "changed.zip"
    path.write_bytes(pack_bundle("x", {"experiment.json": document, **files}))
    return path


def test_an_imported_experiment_is_there_with_its_raw_series(bundle: Path) -> None:
    done = import_bundle(bundle)
    assert (done.experiment, done.is_new, done.was_measured_here) == (ID, True, False)
    assert load_stored(ID) == portable_experiment(experiment())
    assert stored_slices(2, 1) == (Slice(0, 1, 20, (3, 4)), CUT_OFF)
    assert stored_slices(0, 0) == ()


def test_exporting_what_was_imported_gives_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    import_bundle(bundle)
    with closing(open_store()) as store:

        def stored(workload: str, round_: int, index: int) -> Sequence[Slice]:
            return store.slices(ID, workload, round_, index)

        again = export_bundle(load_stored(ID), tmp_path / "again.zip", slices_of=stored)
    assert again.read_bytes() == bundle.read_bytes()


def test_the_report_of_an_imported_experiment_warns_of_its_command(bundle: Path, tmp_path: Path) -> None:
    warning = "This experiment was imported. Read the command before you run it"
    assert warning not in write_report(experiment(), tmp_path / "own.html").read_text(encoding="utf-8")
    import_bundle(bundle)
    assert warning in write_report(load_stored(ID), tmp_path / "theirs.html").read_text(encoding="utf-8")


def test_importing_twice_changes_nothing_and_says_so(bundle: Path) -> None:
    import_bundle(bundle)
    before = list_stored()
    again = import_bundle(bundle)
    assert (again.is_new, again.was_measured_here) == (False, False)
    assert list_stored() == before
    assert len(stored_slices(2, 1)) == 2


def test_ones_own_experiment_is_not_imported_over_itself(bundle: Path) -> None:
    with closing(open_store()) as store:
        store.save(experiment())
        store.add_blocks(ID, experiment().blocks)
    done = import_bundle(bundle)
    assert (done.is_new, done.was_measured_here) == (False, True)
    assert list_stored()[0].imported is None
    assert load_stored(ID) == experiment()


def test_an_id_that_is_taken_by_another_experiment_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    with closing(open_store()) as store:
        store.save(experiment())
        store.add_blocks(ID, experiment().blocks)
    other = export_bundle(replace(experiment(), notes=("another",), verdicts=()), tmp_path / "o.zip")
    with pytest.raises(StorageError) as caught:
        import_bundle(other)
    assert str(caught.value) == (
        f'a different experiment with the id "{ID}" is already stored\n'
        "DETAIL:  they differ in verdicts, notes; the stored one was measured here and is kept\n"
        "HINT:  compare both without importing: pgdyno bundle compare EXPERIMENT FILE"
    )
    assert load_stored(ID) == experiment()


def test_what_was_imported_is_told_from_what_was_measured_here(bundle: Path) -> None:
    import_bundle(bundle)
    with pytest.raises(UsageError) as caught:
        load_stored(None)
    assert str(caught.value) == (
        "no experiment was measured here yet\nDETAIL:  1 imported\n"
        "HINT:  name one of them: see pgdyno report --list"
    )
    own = replace(experiment(), id="older", created="2001-01-01T00:00:00Z")
    with closing(open_store()) as store:
        store.save(own)
    assert load_stored(None).id == "older"
    assert [(one.id, one.imported is None) for one in list_stored()] == [(ID, False), ("older", True)]
    assert CliRunner().invoke(report, ["--list"]).output == (
        f"{ID:45} Is the planned configuration faster than the default one? (imported)\n"
        f"{'older':45} Is the planned configuration faster than the default one?\n"
    )


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_bundles_of_earlier_versions_stay_readable(path: Path) -> None:
    done = import_bundle(path)
    assert done.is_new
    assert load_stored(done.experiment).is_complete


def test_there_are_bundles_of_earlier_versions() -> None:
    assert len(EARLIER) >= 6


def test_a_damaged_bundle_is_refused_with_every_reason(tmp_path: Path) -> None:
    path = of_document(tmp_path, {"blocks": 3, "question": None})
    with pytest.raises(StorageError) as caught:
        import_bundle(path)
    assert str(caught.value) == (
        f'the bundle "{path}" is refused: 3 problems\n'
        "DETAIL:  experiment.json: the document is not an experiment\n"
        "experiment.json: question: input should be a valid string\n"
        "experiment.json: blocks: input should be a valid tuple\n"
        "HINT:  copy it again from where it was exported"
    )
    assert list_stored() == []


def test_an_experiment_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r'DETAIL:  its baseline "nothing" is not one of its variants'):
        import_bundle(of_document(tmp_path, {"baseline": "nothing"}))
    assert list_stored() == []


def test_a_series_that_is_not_the_experiments_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    path = of_document(tmp_path, {}, **{"slices.csv": b"workload,round\r\n"})
    with pytest.raises(StorageError, match=r"line 1 of slices.csv is not a slice of the experiment"):
        import_bundle(path)
    assert list_stored() == []


def test_the_command_says_what_it_did(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["bundle", "import", str(bundle)])
    main(["bundle", "import", str(bundle)])
    assert capsys.readouterr().out == (
        f"Imported {ID}: Is the planned configuration faster than the default one?\n"
        f"Its report: pgdyno report {ID}\n"
        f"Nothing to do: {ID} was imported before with the same contents\n"
    )
    main(["bundle", "import", str(bundle), "--json"])
    assert json.loads(capsys.readouterr().out)["imported"] == {
        "experiment": ID,
        "question": "Is the planned configuration faster than the default one?",
        "is_new": False,
        "was_measured_here": False,
    }


def test_the_command_fails_with_1_and_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = of_document(tmp_path, {"id": "\x1b[2J"})
    with pytest.raises(SystemExit) as caught:
        main(["bundle", "import", str(path)])
    assert caught.value.code == 1
    assert capsys.readouterr().err == (
        f'pgdyno: ERROR:  the bundle "{path}" is refused: 1 problem  (PGD-500)\n'
        'DETAIL:  its id "\N{REPLACEMENT CHARACTER}[2J" has other characters than letters, digits, ".", '
        '"_", "-"\n'
        "HINT:  copy it again from where it was exported\n"
    )
