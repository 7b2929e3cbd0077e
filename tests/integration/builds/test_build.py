"""What cannot be built is refused before anything is fetched."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import build, request, unfetched

from pgdyno.base.errors import InstallationError, StorageError, UsageError
from pgdyno.builds.build_request import BuildRequest
from pgdyno.builds.needs import prerequisites


def test_flags_that_make_would_interpret_are_refused(tree: Path) -> None:
    with pytest.raises(UsageError, match="--portable"):
        build(BuildRequest(str(tree), "o2", "gcc", "$(id)"), Remembered())


def test_a_cpu_that_the_compiler_does_not_know_is_refused_in_its_own_words(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build(replace(request(tree), target="commodore-64"), Remembered(), fetch=unfetched)
    assert caught.value.message == 'gcc does not support --portable "commodore-64"'
    assert "'commodore-64'" in (caught.value.detail or "")
    assert caught.value.hint == "omit it, or name a CPU of this architecture that the compiler supports"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a CPU of x86-64")
def test_a_cpu_that_can_do_more_than_this_one_is_refused(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build(
            replace(request(tree), target="knl"), Remembered(), fetch=unfetched
        )  # a Xeon Phi: no other has AVX512ER
    assert caught.value.message == 'this CPU cannot run code for --portable "knl"'
    detail = caught.value.detail or ""
    assert detail.startswith("it lacks ")
    assert "AVX512ER, " in detail
    assert caught.value.hint == "build on a host with such a CPU, or name an older CPU"


def test_an_unknown_workload_is_named_before_anything_is_fetched(tree: Path) -> None:
    asked = replace(request(tree), training=("sysbench-read-only", "sysbench-read"))
    with pytest.raises(UsageError) as caught:
        build(asked, Remembered(), fetch=unfetched)
    assert caught.value.message == 'no workload "sysbench-read"'
    assert "sysbench-read-only" in (caught.value.hint or "")


def test_what_is_not_trained_cannot_be_told_on_what(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build(replace(request(tree, "o2+lto"), training=("pgbench-tpcb",)), Remembered(), fetch=unfetched)
    assert str(caught.value) == (
        "--train needs a recipe with pgo or bolt\n"
        "DETAIL:  requested: o2+lto\n"
        "HINT:  use --recipe o2+lto+pgo, or omit --train"
    )


def test_all_that_the_host_lacks_is_named_at_once_before_anything_is_fetched(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prerequisites, "is_installed", lambda program: program not in ("bison", "make"))
    monkeypatch.setattr(prerequisites, "_there", lambda *_: [])
    with pytest.raises(InstallationError) as caught:
        build(request(tree, "pgo+bolt"), Remembered(), fetch=unfetched, find_bolt=lambda: None)
    assert str(caught.value) == (
        "PostgreSQL cannot be built on this host yet\n"
        "DETAIL:  missing: llvm-bolt, make, bison, stdlib.h, zlib.h\n"
        "HINT:  apt-get install bolt-19 make bison libc6-dev zlib1g-dev"
    )


def test_a_directory_that_make_would_take_apart_is_refused(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "my home"))
    with pytest.raises(UsageError) as caught:
        build(request(tree, "o2"), Remembered())
    assert caught.value.message == f'PostgreSQL cannot be built in "{tmp_path}/my home"'
    assert caught.value.hint == "set PGDYNO_HOME to another directory"


def test_without_enough_disk_nothing_begins(tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000_000))
    with pytest.raises(StorageError) as caught:
        build(request(tree, "o2"), Remembered())
    assert str(caught.value) == (
        f"not enough disk space in {home} for building PostgreSQL\n"
        "DETAIL:  needed 2\xa0GB, free 954\xa0MB\n"
        "HINT:  remove something, or set PGDYNO_HOME to a directory on a larger disk"
    )
    assert list((home / "builds").glob("built-*")) == []


def test_without_enough_memory_nothing_begins(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    with pytest.raises(InstallationError) as caught:
        build(request(tree, "o2"), Remembered(), available_memory_bytes=lambda: 600_000_000)
    assert str(caught.value) == (
        "not enough memory for building PostgreSQL\n"
        "DETAIL:  needed 3.61\xa0GB, available 572\xa0MB: 500\xa0MB for a server, "
        "200\xa0MB for each of 16 compilers\n"
        "HINT:  stop other programs, or raise the memory limit of this container or service"
    )
    assert list((home / "builds").glob("built-*")) == []


def test_where_nobody_knows_how_much_memory_there_is_it_is_built(tree: Path) -> None:
    assert build(request(tree, "o2"), Remembered(), available_memory_bytes=lambda: 0).server_version == "18.6"
