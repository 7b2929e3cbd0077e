"""``pgdyno experiments``: what it lists, deletes and refuses."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.synthetic import READ_ONLY, experiment
from tests.unit.results.test_stored import ID, spoil, spoilt_document, store

from pgdyno.base.errors import StorageError
from pgdyno.cli.main import main
from pgdyno.model.experiments.slices import Slice
from pgdyno.results.report import write_report
from pgdyno.results.stored import delete_stored, list_stored, load_stored
from pgdyno.store.experiments import open_store


@pytest.fixture(autouse=True)
def store_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))
    return tmp_path / "home/experiments/experiments.sqlite"


@pytest.mark.parametrize("document", [spoilt_document(), "", "{", "[]", "\x1b[2J", '{"id": 1e999}'])
def test_an_experiment_that_cannot_be_read_is_one_line_of_the_list(
    store_file: Path, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store(experiment(), replace(experiment(), id="another", created="2001-01-01T00:00:00Z"))
    spoil(store_file, document)
    main(["report", "--list"])
    assert capsys.readouterr().out == (
        f"{ID:45} unreadable: pgdyno report {ID} shows the reason\n{'another':45} {experiment().question}\n"
    )
    main(["experiments", "list", "--json"])
    listed = json.loads(capsys.readouterr().out)["experiments"]
    assert [one["problem"] for one in listed] == [f'the experiment "{ID}" cannot be read', None]
    with pytest.raises(StorageError) as caught:
        load_stored(ID)
    assert caught.value.message == f'the experiment "{ID}" cannot be read'
    assert caught.value.detail
    assert caught.value.hint == (
        f"upgrade pgdyno if a newer version stored it; otherwise: pgdyno experiments delete {ID}"
    )
    main(["experiments", "delete", ID])
    assert [one.id for one in list_stored()] == ["another"]


def test_a_question_of_several_lines_is_one_line_of_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    store(replace(experiment(), question="Is it?\n20260101-000000-fake   Planted\x1b[2J"))
    main(["experiments", "list"])
    assert capsys.readouterr().out == f"{ID:45} Is it? 20260101-000000-fake Planted\ufffd[2J\n"


def test_deleting_takes_the_experiment_its_series_and_its_report(
    store_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(experiment(), id="other")
    store(experiment(), other)
    with closing(open_store()) as opened:
        opened.add_slice(ID, READ_ONLY, 0, 0, Slice(0, 1, 2, (3, 4)))
        opened.add_slice("other", READ_ONLY, 0, 0, Slice(0, 1, 2, (3, 4)))
    report, others = write_report(experiment()), write_report(other)
    main(["experiments", "delete", ID, ID])
    assert capsys.readouterr().out == f"Deleted {ID}\n"
    assert not report.exists()
    assert others.exists()
    with closing(sqlite3.connect(store_file)) as connection:
        for query in ("SELECT DISTINCT experiment FROM block", "SELECT DISTINCT experiment FROM slice"):
            assert connection.execute(query).fetchall() == [("other",)]
    assert load_stored("other") == other
    main(["experiments", "delete", "other", "--json"])
    assert json.loads(capsys.readouterr().out)["deleted"] == ["other"]
    assert list_stored() == []


def test_an_unknown_experiment_is_refused_and_none_is_deleted() -> None:
    store(experiment())
    with pytest.raises(StorageError) as caught:
        delete_stored([ID, "nothing"])
    assert str(caught.value) == f'no experiment "nothing"\nDETAIL:  the newest are: {ID}'
    assert load_stored(ID) == experiment()
