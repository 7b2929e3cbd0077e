"""Whether a data set is there for the account that servers run as."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.measure.arenas.datasets import _place_of, is_loaded, schema_key
from pgdyno.postgres.process.account import Account
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.workload.bundled._pgbench import PGBENCH_DATA

INSTALLATION = Installation(Path("/opt/pg/bin"), "18.6", 18, "/opt/pg/bin")


def test_a_data_set_counts_for_the_account_that_has_loaded_it(tmp_path: Path) -> None:
    ours, theirs = (
        Workspace(tmp_path, Account("any", uid, uid, is_other=False))
        for uid in (os.geteuid(), os.geteuid() + 1)
    )
    assert not is_loaded(ours, PGBENCH_DATA, INSTALLATION)
    (tmp_path / f"datasets/pg18.6-checksums-{PGBENCH_DATA.key}").mkdir(parents=True)
    assert is_loaded(ours, PGBENCH_DATA, INSTALLATION)
    assert not is_loaded(theirs, PGBENCH_DATA, INSTALLATION)


def test_a_copy_is_of_one_build_and_one_c_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = replace(PGBENCH_DATA, name="copy", dump="/home/me/shop.dump")
    place = Workspace(tmp_path, Account("any", os.geteuid(), os.geteuid(), is_other=False))
    debian, wheel = (made_build(tmp_path / name, "gcc 12") for name in ("debian", "wheel"))
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    for one in (PGBENCH_DATA, copy):
        _place_of(place, one, debian).mkdir(parents=True)
        assert is_loaded(place, one, debian)
    assert is_loaded(place, PGBENCH_DATA, wheel)
    assert not is_loaded(place, copy, wheel)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.41"))
    assert is_loaded(place, PGBENCH_DATA, debian)
    assert not is_loaded(place, copy, debian)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    made_build(tmp_path / "debian", "gcc 14")
    assert not is_loaded(place, copy, debian)


def test_equal_sql_with_one_build_has_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    debian, wheel = (made_build(tmp_path / name, "gcc 12") for name in ("debian", "wheel"))
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    keys = [
        schema_key(build, statements)
        for build in (debian, wheel)
        for statements in ((), ("ANALYZE",), ("VACUUM", "ANALYZE"), ("VACUUM; ANALYZE",))
    ]
    assert len({*keys}) == 8
    assert schema_key(debian, ["ANALYZE"]) == keys[1]
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.41"))
    assert schema_key(debian, ["ANALYZE"]) not in keys


def made_build(directory: Path, compiler: str) -> Installation:
    """Make a build of version 18.6 whose executable file names its compiler."""
    directory.mkdir(exist_ok=True)
    text = f"PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by {compiler}, 64-bit"
    (directory / "postgres").write_text(text)
    return Installation(directory, "18.6", 18, str(directory))
