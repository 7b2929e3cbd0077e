"""PostgreSQL's own tests, run from its source tree against a running server.

Source: PostgreSQL documentation, "Running the Tests Against an Existing Installation".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pgdyno.base.errors import InstallationError
from pgdyno.builds.making import Making, Watch

_PASSED = re.compile(r"\b(?:All )?(\d+)(?: of \d+)? tests passed")  # of 15 and older, some may be ignored
_FAILED = re.compile(
    r"^not ok \d+ +[-+] (\S+)|^(?:test)? *(\S+) +\.\.\. FAILED", re.MULTILINE
)  # from 16 on; before
_WITHOUT_TESTS = frozenset({"pg_prewarm"})  # but for one of a whole server, which starts its own
_PREPARED_FOR = frozenset({"pg_stat_statements"})  # to be preloaded, says it, and it is
_TESTS = "$(if $(NO_INSTALLCHECK),,$(REGRESS) $(ISOLATION))"


@dataclass(frozen=True)
class Suite:
    """The tests of one directory of the tree; ``expected`` is about how many there are, and ``seconds``."""

    name: str
    directory: str
    target: str
    expected: int
    seconds: float


REGRESSION = Suite("regress", "src/test/regress", "installcheck-parallel", expected=229, seconds=90)
ISOLATION = Suite("isolation", "src/test/isolation", "installcheck", expected=120, seconds=130)

TEST_DIRECTORIES = (REGRESSION.directory, "src/interfaces/libpq", ISOLATION.directory)
"""What of a tree has to be built for its tests, if nothing else is; in this order.

The isolation tests' Makefile does not wait for the library that it links: with several jobs, its
program was linked while libpq.so was not there yet, with the archive, whose symbols are not complete.
"""


def suites_of(extensions: Collection[str]) -> tuple[Suite, ...]:
    """Return the suites of the contrib modules."""
    return tuple(
        Suite(name, f"contrib/{name}", "installcheck", expected=10, seconds=5)
        for name in extensions
        if name not in _WITHOUT_TESTS
    )


def with_tests(making: Making, extensions: Collection[str]) -> tuple[str, ...]:
    """Return those contrib modules of a configured tree that can be tested on a server that is running.

    Raises: InstallationError if make cannot tell.
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
    """Run a suite and return how many tests have passed.

    ``variables`` tell make which programs are tested (``bindir``), and clients where the server is
    (``PGHOST`` and the like: make passes on what it is called with).
    Raises: InstallationError naming the tests that failed, or with make's last words if none was run.
    """
    # Some modules say that they cannot be tested so, because they have to be preloaded. Here they are.
    variables = {**variables, "NO_INSTALLCHECK": ""}
    status, said = making.test(suite.directory, suite.target, variables, suite.expected, watch)
    passed = [int(number) for number in _PASSED.findall(said)]
    if status == 0 and passed:
        return sum(passed)
    failed = [new or old for new, old in _FAILED.findall(said)]
    raise InstallationError(
        f"{making.title} does not pass its own tests: {suite.name}",
        detail=f"failed: {', '.join(failed)}" if failed else "\n         ".join(said.splitlines()[-12:]),
        hint=f"the differences are in regression.diffs below {making.tree / suite.directory}",
    )
