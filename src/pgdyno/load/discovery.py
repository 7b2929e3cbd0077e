"""Find the generators' programs on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

from pgdyno.base.errors import GeneratorMissingError
from pgdyno.load._contract import Generator
from pgdyno.load.driver import Driver
from pgdyno.load.pgbench import Pgbench
from pgdyno.load.sysbench import Sysbench, wrapper_text

_DRIVER = "pgdyno-driver"
_TPCHGEN = "tpchgen-cli"
_VERSION = re.compile(rb"\(PostgreSQL\) ([1-9][0-9])")

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[bytes]"]
"""Runs a program to its end, as the generators' account."""


def find_driver(scratch_directory: Path) -> Driver:
    """Return pgdyno-driver, copied to a directory that the generators' account can reach.

    Raises: GeneratorMissingError if this installation of pgdyno lacks it.
    """
    own = Path(sysconfig.get_path("scripts")) / _DRIVER
    found = own if own.is_file() else shutil.which(_DRIVER)
    if found is None:
        raise GeneratorMissingError(
            f'the load generator "{_DRIVER}" is missing',
            detail=f"it is part of pgdyno, but is neither in {own.parent} nor on the PATH ({_path()})",
            hint="reinstall pgdyno, from a wheel or with Rust's cargo available",
        )
    return Driver(_copied(Path(found), scratch_directory))


def find_tpchgen(scratch_directory: Path) -> Path:
    """Return the generator of TPC-H's rows, copied like the driver.

    Raises: GeneratorMissingError naming the extra that provides it.
    """
    own = Path(sysconfig.get_path("scripts")) / _TPCHGEN
    found = own if own.is_file() else shutil.which(_TPCHGEN)
    if found is None:
        raise GeneratorMissingError(
            f'the generator of TPC-H\'s rows, "{_TPCHGEN}", is not installed',
            detail=f"it is neither in {own.parent} nor on the PATH ({_path()})",
            hint="pip install 'pgdyno[tpch]'",
        )
    return _copied(Path(found), scratch_directory)


def _path() -> str:
    """Return the search path for programs; for root it is the system's, not the exported one."""
    return os.environ.get("PATH", os.defpath)


def _copied(program: Path, directory: Path) -> Path:
    """Return a copy of a program that every account can run: the original may be in a home directory."""
    copy = directory / program.name
    if not copy.exists():
        shutil.copy(program, copy)
        copy.chmod(0o755)
    return copy


def find_generator(name: str, *, bin_directory: Path, scratch_directory: Path, run: Run) -> Generator:
    """Return the generator ``name``; pgbench preferably from ``bin_directory``.

    The sysbench wrapper is written to ``scratch_directory``, readable by the generators' account.
    Raises: GeneratorMissingError naming the package to install.
    """
    if name == "pgbench":
        program = _find_pgbench(bin_directory)
        return Pgbench(program, _major_of(program, run))
    if name == "sysbench":
        found = shutil.which("sysbench")
        if found is None:
            raise GeneratorMissingError(
                'the load generator "sysbench" is not installed',
                hint="install it (apt install sysbench), or use pgdyno's own driver for the same "
                "transactions: --generator driver",
            )
        wrapper = scratch_directory / "sysbench_transactions.lua"
        wrapper.write_text(wrapper_text())
        wrapper.chmod(0o644)
        return Sysbench(Path(found), wrapper)
    raise GeneratorMissingError(f'there is no load generator "{name}"', detail="known: pgbench, sysbench")


def _major_of(program: Path, run: Run) -> int:
    done = run([str(program), "--version"])
    found = _VERSION.search(done.stdout)
    if found is None:
        raise GeneratorMissingError(
            f'"{program}" does not report its version',
            detail=(done.stderr or done.stdout)[-800:].decode(errors="replace").strip() or None,
            hint="reinstall PostgreSQL's client programs",
        )
    return int(found[1])


def _find_pgbench(bin_directory: Path) -> Path:
    own = bin_directory / "pgbench"
    if own.is_file():
        return own
    found = shutil.which("pgbench")
    if found is None:
        raise GeneratorMissingError(
            'the load generator "pgbench" is not installed',
            detail=f"it is neither in {bin_directory} nor on the PATH ({_path()})",
            hint="install PostgreSQL's client programs (apt install postgresql-client postgresql-contrib)",
        )
    return Path(found)
