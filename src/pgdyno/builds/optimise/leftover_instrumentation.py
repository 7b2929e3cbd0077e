"""Find traces of instrumentation in a finished installation."""

from __future__ import annotations

from pathlib import Path

from pgdyno.base.errors import InstallationError

_MARKS = (b"__gcov_", b"__llvm_prf_", b"__llvm_profile_", b"__bolt_instr")
"""Symbols and sections that only instrumented files contain, by gcc, clang and BOLT."""


def require_no_instrumentation(prefix: Path) -> None:
    """Raise InstallationError if any file of an installation is instrumented."""
    counting = [path for path in sorted(prefix.rglob("*")) if path.is_file() and _counts(path)]
    if counting:
        raise InstallationError(
            f"{len(counting)} files of the finished build are still instrumented",
            detail=f"for example {counting[0].relative_to(prefix)}",
            hint="this is a bug in pgdyno: a stage left files of an earlier stage behind",
        )


def _counts(path: Path) -> bool:
    content = path.read_bytes()
    return any(mark in content for mark in _MARKS)
