"""Find traces of instrumentation in a finished installation."""

from __future__ import annotations

from pathlib import Path

from pgdyno.base.errors import InstallationError

_MARKS = (b"__gcov_", b"__llvm_prf_", b"__llvm_profile_", b"__bolt_instr")
"""Names that programs and libraries have only if they count, of gcc, clang and BOLT."""


def require_nothing_counts(prefix: Path) -> None:
    """Raise InstallationError if any file of an installation was made for counting."""
    counting = [path for path in sorted(prefix.rglob("*")) if path.is_file() and _counts(path)]
    if counting:
        raise InstallationError(
            f"parts of the finished build still count what they do, {len(counting)} of them",
            detail=f"for example {counting[0].relative_to(prefix)}",
            hint="that is a mistake in pgdyno: a stage has left something of an earlier one",
        )


def _counts(path: Path) -> bool:
    content = path.read_bytes()
    return any(mark in content for mark in _MARKS)
