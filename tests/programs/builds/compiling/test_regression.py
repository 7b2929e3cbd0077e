"""What PostgreSQL's own tests say is understood, of every version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError
from pgdyno.builds.compiling.regression import REGRESSION, run_suite, suites_of, with_tests
from pgdyno.builds.make import Making

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("setpriv") is None,
    reason="not installed: make, or setpriv (apt install make util-linux)",
)

PASSED_18 = """\
# +++ regress install-check in src/test/regress +++
ok 1         - test_setup                                330 ms
# parallel group (2 tests):  boolean char
ok 2         + boolean                                    71 ms
1..2
# All 2 tests passed.
"""
PASSED_15 = """\
test test_setup                   ... ok          330 ms
     boolean                      ... ok           71 ms

=====================
 All 2 tests passed.
=====================
"""
IGNORED_15 = """\
test random                       ... failed (ignored)          330 ms
     boolean                      ... ok           71 ms
 1 of 2 tests passed, 1 failed test(s) ignored.
"""
FAILED_18 = """\
ok 1         - test_setup                                330 ms
not ok 2     + boolean                                    71 ms
not ok 3     - char                                       12 ms
# 2 of 3 tests failed.
"""
FAILED_15 = """\
test test_setup                   ... ok          330 ms
     boolean                      ... FAILED       71 ms
test char                         ... FAILED (test process exited with exit code 2)    4 ms
 2 of 3 tests failed.
"""


def making(tmp_path: Path, said: str, status: int = 0) -> Making:
    """Return a tree whose tests say so, and then what make and its environment were told."""
    directory = tmp_path / "tree/src/test/regress"
    directory.mkdir(parents=True)
    (directory / "said").write_text(said)
    (directory / "Makefile").write_text(
        f"installcheck-parallel:\n\t@cat said; echo $(bindir) $$PGHOST; exit {status}\n"
    )
    return Making(tmp_path / "tree", tmp_path / "log", "PostgreSQL 18.6")


@pytest.mark.parametrize("said", [PASSED_18, PASSED_15])
def test_tests_that_passed_are_counted(said: str, tmp_path: Path) -> None:
    assert run_suite(making(tmp_path, said), REGRESSION, {}, lambda _: None) == 2


def test_what_fails_and_may_is_no_failure(tmp_path: Path) -> None:
    assert run_suite(making(tmp_path, IGNORED_15), REGRESSION, {}, lambda _: None) == 1


def test_tests_of_two_kinds_are_added_up_and_all_have_to_pass(tmp_path: Path) -> None:
    assert run_suite(making(tmp_path, PASSED_18 * 2), REGRESSION, {}, lambda _: None) == 4
    with pytest.raises(InstallationError) as caught:
        run_suite(making(tmp_path / "again", PASSED_18 + FAILED_18, 1), REGRESSION, {}, lambda _: None)
    assert caught.value.detail == "failed: boolean, char"


@pytest.mark.parametrize("said", [FAILED_18, FAILED_15])
def test_tests_that_failed_are_named(said: str, tmp_path: Path) -> None:
    with pytest.raises(InstallationError) as caught:
        run_suite(making(tmp_path, said, status=1), REGRESSION, {}, lambda _: None)
    assert caught.value.message == "PostgreSQL 18.6 failed its own tests: regress"
    assert caught.value.detail == "failed: boolean, char"
    assert (caught.value.hint or "").endswith("tree/src/test/regress")


def test_tests_that_could_not_be_run_have_not_passed(tmp_path: Path) -> None:
    with pytest.raises(InstallationError) as caught:
        run_suite(making(tmp_path, "could not connect to the server\n"), REGRESSION, {}, lambda _: None)
    assert "could not connect to the server" in (caught.value.detail or "")


def test_make_is_told_what_is_tested_and_where_it_listens(tmp_path: Path) -> None:
    tested = making(tmp_path, PASSED_18)
    run_suite(tested, REGRESSION, {"bindir": "/built/bin", "PGHOST": "/sockets"}, lambda _: None)
    assert "/built/bin /sockets" in tested.log.read_text()


def test_modules_without_tests_of_this_kind_are_left_out() -> None:
    assert [suite.name for suite in suites_of(["btree_gin", "pg_prewarm", "pgcrypto"])] == [
        "btree_gin",
        "pgcrypto",
    ]


def test_modules_that_a_running_server_can_be_tested_with_are_found(tmp_path: Path) -> None:
    for name, makefile in (
        ("hstore", "REGRESS = hstore"),
        ("pgrowlocks", "ISOLATION = pgrowlocks"),
        ("spi", "MODULES = refint"),
        ("basic_archive", "REGRESS = basic_archive\nNO_INSTALLCHECK = 1"),
        ("pg_stat_statements", "REGRESS = select\nNO_INSTALLCHECK = 1"),
    ):
        (tmp_path / "contrib" / name).mkdir(parents=True)
        (tmp_path / "contrib" / name / "Makefile").write_text(makefile + "\n")
    tree = Making(tmp_path, tmp_path / "log", "PostgreSQL 18.6")
    names = ["hstore", "pgrowlocks", "spi", "basic_archive", "pg_stat_statements", "somebodys"]
    assert with_tests(tree, names) == ("hstore", "pgrowlocks", "pg_stat_statements")
