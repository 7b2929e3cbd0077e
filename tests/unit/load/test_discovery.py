"""Programs that issue load: what is missing is named with the package that has it."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from pgdyno.base.errors import GeneratorMissingError
from pgdyno.load.discovery import find_driver, find_generator, find_tpchgen


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty directory that is the whole PATH, and has the scripts of this installation."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    return tmp_path


def printing(output: bytes, errors: bytes = b"") -> object:
    def run(argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(argv, 0, output, errors)

    return run


def test_what_is_not_installed_is_named_with_its_package(empty: Path) -> None:
    def found(name: str) -> object:
        return find_generator(name, bin_directory=empty, scratch_directory=empty, run=printing(b""))  # type: ignore[arg-type]

    with pytest.raises(GeneratorMissingError, match=r'"pgbench" is not installed\n') as pgbench:
        found("pgbench")
    assert pgbench.value.hint == (
        "install PostgreSQL's client programs (apt install postgresql-client postgresql-contrib)"
    )
    with pytest.raises(GeneratorMissingError, match=r'"sysbench" is not installed\n.*--generator driver'):
        found("sysbench")
    with pytest.raises(GeneratorMissingError, match=r'there is no load generator "oltp"\nDETAIL:  known: '):
        found("oltp")
    with pytest.raises(GeneratorMissingError, match=r'"pgdyno-driver" is missing\nDETAIL:  it is part of'):
        find_driver(empty)
    with pytest.raises(GeneratorMissingError, match=r"HINT:  pip install 'pgdyno\[tpch\]'$"):
        find_tpchgen(empty)


def test_the_driver_is_copied_where_every_account_can_run_it(empty: Path) -> None:
    own, scratch = empty / "pgdyno-driver", empty / "scratch"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o700)
    scratch.mkdir()
    find_driver(scratch)
    copy = scratch / "pgdyno-driver"
    assert (copy.read_text(), copy.stat().st_mode & 0o777) == ("#!/bin/sh\n", 0o755)


def test_a_pgbench_that_does_not_report_its_version_is_refused_in_its_own_words(empty: Path) -> None:
    (empty / "pgbench").touch()
    with pytest.raises(GeneratorMissingError) as caught:
        find_generator(
            "pgbench",
            bin_directory=empty,
            scratch_directory=empty,
            run=printing(b"", b"libpq.so.5: no such file\n"),  # type: ignore[arg-type]
        )
    assert caught.value.message == f'"{empty}/pgbench" does not report its version'
    assert caught.value.detail == "libpq.so.5: no such file"
