"""Gather the profile data of a trained program, and refuse insufficient data."""

from __future__ import annotations

from pathlib import Path

from pgdyno.base.errors import InstallationError
from pgdyno.builds.compilers._contract import Compiler
from pgdyno.builds.make import RunAs
from pgdyno.host.processes.running import output_of


def gather(compiler: Compiler, counts: Path, tree: Path, run_as: RunAs) -> None:
    """Put the profile data where the compiler will read it.

    Raises: InstallationError for too small a profile, which would make uncovered code slower.
    """
    for argv in compiler.gathering(counts, tree):
        output_of(argv, run_as)
    least, number = compiler.coverage(counts).least, _reached(compiler, counts, run_as)
    if number < least:
        raise InstallationError(
            f"the training profile covers only {number} {compiler.coverage(counts).unit}",
            detail=f"a server under load covers at least {least}",
            hint="name more workloads with --train; was the server killed before it could write its counts?",
        )


def reached(compiler: Compiler, counts: Path, run_as: RunAs) -> str:
    """Return the coverage of the gathered data: ``4012 functions``."""
    return f"{_reached(compiler, counts, run_as)} {compiler.coverage(counts).unit}"


def _reached(compiler: Compiler, counts: Path, run_as: RunAs) -> int:
    return len(output_of(compiler.coverage(counts).argv, run_as).splitlines())
