"""PostgreSQL's regression tests, run from its source tree against a running server.

Source: PostgreSQL documentation, "Running the Tests Against an Existing Installation".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pgdyno.base.errors import InstallationError
from pgdyno.builds.make import Making, Watch

_PASSED = re.compile(r"\b(?:All )?(\d+)(?: of \d+)? tests passed")  # up to 15, some tests may be ignored
_FAILED = re.compile(
    r"^not ok \d+ +[-+] (\S+)|^(?:test)? *(\S+) +\.\.\. FAILED", re.MULTILINE
)  # 16 and later; earlier
_WITHOUT_TESTS = frozenset({"pg_prewarm"})  # it has only a test that starts its own server
_PREPARED_FOR = frozenset({"pg_stat_statements"})  # skips installcheck unless preloaded; here it is
_TESTS = "$(if $(NO_INSTALLCHECK),,$(REGRESS) $(ISOLATION))"


@dataclass(frozen=True)
class Suite:
    """The tests of one directory of the tree; ``expected``: approximate number; ``seconds``: duration."""

    name: str
    directory: str
    target: str
    expected: int
    seconds: float


REGRESSION = Suite("regress", "src/test/regress", "installcheck-parallel", expected=229, seconds=90)
ISOLATION = Suite("isolation", "src/test/isolation", "installcheck", expected=120, seconds=130)

TEST_DIRECTORIES = (REGRESSION.directory, "src/interfaces/libpq", ISOLATION.directory)
"""The directories to build, in this order, to run the tests of a tree that is not built otherwise.

The isolation tests' Makefile lacks the dependency on libpq: with parallel jobs its program was linked before
libpq.so existed, with the static library, which lacks some symbols.
"""


def suites_of(extensions: Collection[str]) -> tuple[Suite, ...]:
    """Return the suites of the contrib modules."""
    return tuple(
        Suite(name, f"contrib/{name}", "installcheck", expected=10, seconds=5)
        for name in extensions
        if name not in _WITHOUT_TESTS
    )


def with_tests(making: Making, extensions: Collection[str]) -> tuple[str, ...]:
    """Return the contrib modules of a configured tree with tests for a running server.

    Raises: InstallationError if make fails.
    """
    return tuple(
        name
        for name in extensions
        if name in _PREPARED_FOR
        or (
            (making.tree / "contrib" / name / "Makefile").is_file()
            and making.value(f"contrib/{name}", _TESTS, {})
        )
    )


def run_suite(making: Making, suite: Suite, variables: Mapping[str, str], watch: Watch) -> int:
    """Run a suite and return the number of passed tests.

    ``variables``: for make, the tested programs (``bindir``); for clients, the server's address (``PGHOST``
    etc., which make exports).
    Raises: InstallationError naming the failed tests, or with make's last lines if none was run.
    """
    # Some modules disable installcheck because they must be preloaded. Here they are preloaded.
    variables = {**variables, "NO_INSTALLCHECK": ""}
    status, output = making.test(suite.directory, suite.target, variables, suite.expected, watch)
    passed = [int(number) for number in _PASSED.findall(output)]
    if status == 0 and passed:
        return sum(passed)
    failed = [new or old for new, old in _FAILED.findall(output)]
    raise InstallationError(
        f"{making.title} failed its own tests: {suite.name}",
        detail=f"failed: {', '.join(failed)}" if failed else "\n         ".join(output.splitlines()[-12:]),
        hint=f"the differences are in regression.diffs below {making.tree / suite.directory}",
    )
