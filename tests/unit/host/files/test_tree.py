"""Reading: what cannot be read is a fact with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.host.machines import FixtureTree

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.files.tree import EMPTY, NO_SUCH_FILE, Tree, first_known, parsed, together


@pytest.fixture
def tree(tmp_path: Path) -> FixtureTree:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/version").write_text(" Linux 6.1 \n", encoding="utf-8")
    (tmp_path / "proc/empty").write_text("\n", encoding="utf-8")
    (tmp_path / "proc/damaged").write_bytes(b"caf\xe9\n")
    (tmp_path / "proc/self").symlink_to("41")
    return FixtureTree(tmp_path, forbidden=("/proc/kcore", "/proc/1/*"))


def test_text_comes_without_surrounding_white_space_and_with_its_path(tree: Tree) -> None:
    assert tree.text("/proc/version") == Fact("Linux 6.1", "/proc/version")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/proc/none", "no such file"),
        ("/proc/version/below", "no such file"),
        ("/proc/empty", "empty"),
        ("/proc/kcore", "permission denied"),
        ("/proc/1/environ", "permission denied"),
        ("/proc", "is a directory"),
    ],
)
def test_what_cannot_be_read_says_why(tree: Tree, path: str, reason: str) -> None:
    assert tree.text(path) == unknown(reason, path)


def test_bytes_that_are_no_text_do_not_stop_the_reader(tree: Tree) -> None:
    assert tree.text("/proc/damaged").or_else("").startswith("caf")


def test_no_more_is_read_than_asked_for(tree: Tree) -> None:
    assert tree.text("/proc/version", limit_bytes=6).value == "Linux"


def test_names_are_sorted_and_a_directory_may_be_absent_or_forbidden(tree: Tree) -> None:
    assert tree.names("/proc").value == ("damaged", "empty", "self", "version")
    assert tree.names("/sys").value == NO_SUCH_FILE
    assert tree.names("/proc/1/task").value == Unknown("permission denied")


def test_a_link_is_read_without_being_followed(tree: Tree) -> None:
    assert tree.link("/proc/self") == Fact("41", "/proc/self")
    assert tree.link("/proc/version").value == Unknown("invalid argument")


def test_two_paths_to_one_directory_are_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    tree = Tree(tmp_path)
    assert tree.is_same_file("/data", "/link").value is True
    assert tree.is_same_file("/data", "/").value is False
    assert tree.is_same_file("/data", "/none").value == NO_SUCH_FILE


def test_sysctls_of_the_running_kernel_can_be_read() -> None:
    # The kernel allocates as much as is requested: one read of some megabytes fails with ENOMEM.
    assert Tree().text("/proc/sys/kernel/osrelease").is_known


def test_parsing_keeps_the_source_and_leaves_unknowns_alone() -> None:
    assert parsed(Fact("4", "a"), int) == Fact(4, "a")
    assert parsed(Fact[str](EMPTY, "a"), int) == Fact(EMPTY, "a")


def test_the_first_known_of_several_facts_wins_else_the_first() -> None:
    absent: Fact[int] = Fact(NO_SUCH_FILE, "new")
    assert first_known(absent, Fact(1, "old")) == Fact(1, "old")
    assert first_known(absent, Fact(EMPTY, "old")) == absent


def test_facts_that_belong_together_are_unknown_together() -> None:
    assert together({"a": Fact(1, "x"), "b": Fact(2, "y")}, "both") == Fact({"a": 1, "b": 2}, "both")
    assert together({"a": Fact(1, "x"), "b": Fact(EMPTY, "y")}, "both") == unknown("empty: y", "both")
