"""A store of an earlier version stays readable, and is written to from then on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.slices import Slice
from pgdyno.store.experiments import ExperimentStore

VERSION_1 = """
CREATE TABLE slice (
    experiment TEXT NOT NULL, workload TEXT NOT NULL, round INTEGER NOT NULL, block INTEGER NOT NULL,
    arm INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, server_cpu_ns TEXT NOT NULL
);
INSERT INTO slice VALUES ('e', 'w', 0, 1, 1, 10, 20, '3,4');
PRAGMA user_version = 1;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(made)) as connection:
        connection.executescript(VERSION_1)
    return made


@pytest.mark.parametrize("version", [1, 2])
def test_slices_of_earlier_versions_do_not_tell_what_others_took_and_new_ones_do(
    version: int, path: Path
) -> None:
    if version == 2:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("ALTER TABLE slice ADD COLUMN drained_ns INTEGER")
            connection.execute("PRAGMA user_version = 2")
    new = Slice(0, 30, 40, (5, 6), None, 0.0625, 0.5)
    with closing(ExperimentStore(path)) as store:
        store.add_slice("e", "w", 0, 1, new)
    with closing(ExperimentStore(path)) as store:
        assert store.slices("e", "w", 0, 1) == (Slice(1, 10, 20, (3, 4)), new)


def test_slices_of_version_1_have_no_ends_and_new_ones_do(path: Path) -> None:
    new = Slice(0, 30, 40, (5, 6), drained_ns=44)
    for _ in range(2):  # what was changed once stays
        with closing(ExperimentStore(path)) as store:
            store.add_slice("e", "w", 0, 1, new)
    with closing(ExperimentStore(path)) as store:
        assert store.slices("e", "w", 0, 1) == (Slice(1, 10, 20, (3, 4)), new, new)


def test_a_store_that_was_left_between_the_column_and_its_version_is_opened(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE slice ADD COLUMN drained_ns INTEGER")
    with closing(ExperimentStore(path)) as store:
        assert store.slices("e", "w", 0, 1) == (Slice(1, 10, 20, (3, 4)),)


def test_what_slices_of_version_2_count_is_added_later(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE slice ADD COLUMN drained_ns INTEGER")
        connection.execute("PRAGMA user_version = 2")
    counted = Slice(1, 10, 20, (3, 4), completed=7, latencies="text")
    with closing(ExperimentStore(path)) as store:
        store.add_counts("e", "w", 0, 1, [counted, Slice(0, 10, 20, (3, 4), completed=9)])
    with closing(ExperimentStore(path)) as store:
        assert store.slices("e", "w", 0, 1) == (counted,)


def test_how_far_apart_load_hosts_began_is_kept_since_version_4(path: Path) -> None:
    new = Slice(0, 30, 40, (5, 6), drained_ns=44, apart_ns=3)
    with closing(ExperimentStore(path)) as store:
        store.add_slice("e", "w", 0, 1, new)
    with closing(ExperimentStore(path)) as store:
        assert store.slices("e", "w", 0, 1) == (Slice(1, 10, 20, (3, 4)), new)


def test_a_store_of_a_newer_version_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 5")
    with pytest.raises(StorageError) as caught:
        ExperimentStore(path)
    assert caught.value.message == f'the store "{path}" was written by a newer pgdyno'
    assert caught.value.detail == "its version is 5, this pgdyno reads up to 4"
