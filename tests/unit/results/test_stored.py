"""Stored experiments: each can be read; one that cannot is a line in the list, and can be deleted."""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden import synthetic_grid
from tests.golden.synthetic import READ_ONLY, experiment
from tests.golden.synthetic_tuning import tuning

from pgdyno.base.errors import LockHeldError, StorageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.slices import Slice
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.results.bundle import export_bundle, portable_experiment, verify_bundle
from pgdyno.results.bundle_import import import_bundle
from pgdyno.results.report import write_report
from pgdyno.results.stored import delete_stored, list_stored, load_stored
from pgdyno.store.bundle import pack_bundle
from pgdyno.store.documents import dump_experiment
from pgdyno.store.experiments import open_store
from pgdyno.store.tunings import save_tuning

ID = experiment().id
INFINITE = float("inf")


@pytest.fixture(autouse=True)
def store_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))
    return tmp_path / "home/experiments/experiments.sqlite"


def store(*experiments: Experiment) -> None:
    with closing(open_store()) as opened:
        for one in experiments:
            opened.save(one)
            opened.add_blocks(one.id, one.blocks)


def spoil(store_file: Path, document: str) -> None:
    """Write what an older pgdyno stored, or a hand."""
    with closing(sqlite3.connect(store_file)) as connection, connection:
        connection.execute("UPDATE experiment SET document = ? WHERE id = ?", (document, ID))


def spoilt_document() -> str:
    """Return the experiment with the null that infinity became."""
    document = dump_experiment(experiment())
    assert isinstance(document["design"], dict)
    document["design"]["slice_s"] = None
    return json.dumps(document)


def test_the_reason_names_the_member(store_file: Path) -> None:
    store(experiment())
    spoil(store_file, spoilt_document())
    with pytest.raises(StorageError) as caught:
        load_stored(ID)
    assert caught.value.detail == "design.slice_s: input should be a valid number"


def test_figures_that_are_no_numbers_are_not_stored() -> None:
    design = replace(experiment().design, slice_s=INFINITE)
    with pytest.raises(StorageError) as caught:
        store(replace(experiment(), design=design))
    assert str(caught.value) == (
        "the experiment cannot be stored\nDETAIL:  design.slice_s: input should be a valid number"
    )
    (first, *others), arm = experiment().blocks, experiment().blocks[0].arms[0]
    for value in (INFINITE, -INFINITE, float("nan")):
        spoilt = replace(first, arms=(replace(arm, values={"latency_ms_p99": value}),))
        with pytest.raises(
            StorageError, match=r"arms.0.values.latency_ms_p99: input should be a valid number"
        ):
            store(replace(experiment(), blocks=(spoilt, *others)))
    with closing(open_store()) as opened:
        assert opened.load(ID).blocks == ()


def test_half_a_character_is_not_stored() -> None:
    with pytest.raises(StorageError) as caught:
        store(replace(experiment(), notes=("\udc80",)))
    assert caught.value.message == "the experiment cannot be stored"
    assert list_stored() == []


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 400])
def test_a_bundle_with_such_a_number_is_refused_in_whole(tmp_path: Path, number: str) -> None:
    whole = json.dumps(dump_experiment(experiment()))
    document, changed = re.subn(r'"slice_s": [0-9.]+', f'"slice_s": {number}', whole)
    assert changed == 1
    path = tmp_path / "b.zip"
    path.write_bytes(pack_bundle("x", {"experiment.json": document.encode()}))
    (problem,) = verify_bundle(path).problems
    assert problem.startswith("experiment.json cannot be read: ")
    with pytest.raises(StorageError):
        import_bundle(path)
    assert list_stored() == []


def test_what_was_deleted_can_be_imported_again(tmp_path: Path) -> None:
    def slices_of(workload: str, round_: int, index: int) -> Sequence[Slice]:
        return [Slice(0, 1, 20, (3, 4))] if (workload, round_, index) == (READ_ONLY, 0, 0) else []

    path = export_bundle(experiment(), tmp_path / "b.zip", slices_of=slices_of)
    import_bundle(path)
    delete_stored([ID])
    with closing(open_store()) as opened:
        assert opened.slices(ID, READ_ONLY, 0, 0) == ()
        assert opened.origins() == {}
    assert import_bundle(path).is_new


def test_none_is_deleted_while_a_pgdyno_measures() -> None:
    store(experiment())
    with workspace().measuring(), pytest.raises(LockHeldError) as caught:
        delete_stored([ID])
    assert caught.value.message == "another pgdyno is measuring on this host"
    assert load_stored(ID) == experiment()


def test_the_report_of_a_proof_shows_its_search_and_others_show_none(tmp_path: Path) -> None:
    shown = "Trials only guide the search"
    assert shown not in write_report(experiment(), tmp_path / "before.html").read_text(encoding="utf-8")
    save_tuning(workspace().experiments(), tuning())
    assert shown in write_report(experiment(), tmp_path / "proof.html").read_text(encoding="utf-8")
    other = replace(experiment(), id="20261125-201500-compare")
    assert shown not in write_report(other, tmp_path / "other.html").read_text(encoding="utf-8")


def test_an_imported_experiment_that_cannot_be_drawn_is_told_in_words(tmp_path: Path) -> None:
    """A database of -1 bytes, for example: checksums and schema are right."""
    document = dump_experiment(portable_experiment(synthetic_grid.experiment()))
    assert isinstance(document["cells"], dict)
    cell = document["cells"]["select-512MB-1"]
    assert isinstance(cell, dict)
    cell["database_bytes"] = -1
    path = tmp_path / "undrawable.zip"
    path.write_bytes(pack_bundle("x", {"experiment.json": json.dumps(document).encode()}))
    imported = load_stored(import_bundle(path).experiment)
    for draw in (write_report, export_bundle):
        with pytest.raises(StorageError) as caught:
            draw(imported, tmp_path / "page")
        assert caught.value.message == f'could not render a report of experiment "{imported.id}"'
        assert "ValueError('math domain error')" in (caught.value.detail or "")
        assert "get the bundle again" in (caught.value.hint or "")
    assert not (tmp_path / "page").exists()


def test_pages_and_texts_of_a_bundle_have_no_control_characters(tmp_path: Path) -> None:
    """A pager or `git diff` hands them to a terminal, which would act on them. CSV keeps all."""
    steering = "\x1b]0;title\x07\x9b31m\u202e"
    told = replace(experiment(), question=f"why{steering}", notes=(f"note{steering}",))
    blocks = tuple(replace(one, void=f"void{steering}") for one in told.blocks)
    told = replace(told, blocks=blocks)
    store(told)
    write_report(told, tmp_path / "page.html")
    with zipfile.ZipFile(export_bundle(told, tmp_path / "bundle.zip")) as archive:
        texts = {Path(name).name: archive.read(name).decode() for name in archive.namelist()}
    texts["page.html"] = (tmp_path / "page.html").read_text()
    for name in ("page.html", "report.html", "README.txt", "experiment.json"):
        text = texts[name]
        found = {character for character in steering if character in text and not character.isprintable()}
        assert found == set(), name
    assert "why\N{REPLACEMENT CHARACTER}]0;title" in texts["page.html"]
