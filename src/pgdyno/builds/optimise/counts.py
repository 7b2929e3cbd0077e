"""Gather the profile data of a trained program, and refuse insufficient data."""

from __future__ import annotations

from pathlib import Path

from pgdyno.base.errors import InstallationError
from pgdyno.builds.compilers._contract import Compiler
from pgdyno.builds.making import RunAs
from pgdyno.host.processes.running import output_of


def gather(compiler: Compiler, counts: Path, tree: Path, run_as: RunAs) -> None:
    """Put the counts where the compiler finds them the next time.

    Raises: InstallationError if too little was reached: such counts would make the rest slower.
    """
    for argv in compiler.gathering(counts, tree):
        output_of(argv, run_as)
    least, number = compiler.coverage(counts).least, _reached(compiler, counts, run_as)
    if number < least:
        raise InstallationError(
            f"training has reached {number} {compiler.coverage(counts).unit}, too little to build for",
            detail=f"at least {least} are expected of a server under load",
            hint="name more workloads with --train; was the server ended before it could write its counts?",
        )


def reached(compiler: Compiler, counts: Path, run_as: RunAs) -> str:
    """Return the coverage of the gathered data: ``4012 functions``."""
    return f"{_reached(compiler, counts, run_as)} {compiler.coverage(counts).unit}"


def _reached(compiler: Compiler, counts: Path, run_as: RunAs) -> int:
    return len(output_of(compiler.coverage(counts).argv, run_as).splitlines())
