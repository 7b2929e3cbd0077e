"""Trees of source files: only what their owner may read, and only plain files, whatever is put there."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.apply.data_directory import OWNER, give_to_owner

from pgdyno.base.errors import RefusedError
from pgdyno.host.files.source_tree import opened_tree, plain_file

ANOTHER = 4713
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user takes root")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory that every user can reach: pytest's own are closed."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-tree-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of a user's."""
    (tmp_path / "home/tree/src").mkdir(parents=True)
    (tmp_path / "home/tree/src/main.c").write_text("int main;\n")
    give_to_owner(tmp_path / "home")
    return give_to_owner(tmp_path / "home/tree")


def content(tree: Path) -> dict[str, bytes]:
    with opened_tree(tree) as found:
        return {file.name: b"".join(file.chunks) for file in found.files()}


def test_a_tree_is_read_in_a_fixed_order(tree: Path) -> None:
    (tree / "z").write_text("z")
    (tree / "a").symlink_to("/etc/shadow")
    found = content(tree)
    assert list(found.items()) == [
        ("a", b"/etc/shadow"),
        ("z", b"z"),
        ("src", b""),
        ("src/main.c", b"int main;\n"),
    ]


@pytest.mark.timeout(60)  # a FIFO may keep nobody waiting
@pytest.mark.parametrize("name", ["fifo", "src/fifo"])
def test_a_fifo_is_refused_by_name(tree: Path, name: str) -> None:
    os.mkfifo(tree / name)
    with pytest.raises(RefusedError) as caught:
        content(tree)
    assert caught.value.message == f'"{tree}" cannot be used as source'
    assert caught.value.detail == f'"{name}" is not a regular file'


@needs_root
def test_a_device_is_refused(tree: Path) -> None:
    os.mknod(tree / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    with pytest.raises(RefusedError, match='"zero" is not a regular file'):
        content(tree)


def test_a_tree_larger_than_any_is_refused(tree: Path) -> None:
    (tree / "hole").touch()
    os.truncate(tree / "hole", 1 << 40)
    with pytest.raises(RefusedError, match='the tree exceeds 4294967296 bytes at "hole"'):
        content(tree)


def test_a_tree_deeper_than_any_is_refused(tree: Path) -> None:
    (tree / "/".join(["d"] * 70)).mkdir(parents=True)
    with pytest.raises(RefusedError, match="is nested more than 64 levels deep"):
        content(tree)


@needs_root
def test_what_its_owner_may_not_read_root_does_not_read(tree: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    os.link(secret, tree / "hard")
    with pytest.raises(RefusedError, match="hard: Permission denied"):
        content(tree)
    secret.chmod(0o640)  # as root's group, which acting as another user leaves
    with pytest.raises(RefusedError) as caught:
        content(tree)
    assert caught.value.detail in {
        f'"hard" belongs to user 0, but the tree belongs to user {OWNER}',
        "hard: Permission denied",
    }
    secret.chmod(0o644)
    assert content(tree)["hard"] == b"root's"


def by_a_link(tree: Path, private: Path) -> Path:
    (tree / "link").symlink_to(private)
    os.chown(tree / "link", OWNER, OWNER, follow_symlinks=False)
    return tree / "link"


def by_a_directory(tree: Path, private: Path) -> Path:
    return private.rename(tree / "moved")


@needs_root
@pytest.mark.parametrize("lead", [by_a_link, by_a_directory])
def test_roots_directory_that_a_user_leads_to_is_read_with_that_users_rights(
    tree: Path, tmp_path: Path, lead: Callable[[Path, Path], Path]
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "secret").write_text("root's")
    path = lead(tree, private)
    with pytest.raises(RefusedError, match="Permission denied"):
        content(path)
    path.resolve().chmod(0o755)
    (path / "secret").chmod(0o644)
    assert content(path) == {"secret": b"root's"}


@needs_root
def test_a_user_leads_through_no_directory_that_is_closed_to_that_user(tree: Path, tmp_path: Path) -> None:
    """Also where what lies behind it may be read by everybody."""
    project = tmp_path / "closed/project"
    project.mkdir(parents=True)
    project.parent.chmod(0o700)
    (project / "Makefile").write_text("all:")
    (tree / "link").symlink_to(project)
    os.chown(tree / "link", OWNER, OWNER, follow_symlinks=False)
    with pytest.raises(RefusedError, match="Permission denied"):
        content(tree / "link")
    project.parent.chmod(0o755)
    assert content(tree / "link") == {"Makefile": b"all:"}


@needs_root
def test_roots_own_place_may_hold_a_tree_of_another_user(tree: Path, tmp_path: Path) -> None:
    """As an archive has it that root has unpacked: nobody else has led root there."""
    (tmp_path / "closed").mkdir(mode=0o700)
    inner = tmp_path / "closed/tree"
    inner.mkdir()
    (inner / "configure").write_text("#!/bin/sh")
    for path in (inner, inner / "configure"):
        os.chown(path, OWNER, OWNER)
    assert content(inner) == {"configure": b"#!/bin/sh"}


@needs_root
def test_a_place_that_two_users_can_exchange_is_refused(tree: Path) -> None:
    os.chown(tree, ANOTHER, ANOTHER)
    with pytest.raises(RefusedError, match=f"users {min(OWNER, ANOTHER)} and {max(OWNER, ANOTHER)} can all"):
        content(tree)


def test_a_directory_exchanged_for_a_link_is_not_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/secret").write_text("root's")
    (tree / "file").write_text("first")
    with opened_tree(tree) as found:
        files = found.files()
        assert next(files).name == "file"
        (tree / "src").rename(tree / "was")
        (tree / "src").symlink_to(tmp_path / "other")
        with pytest.raises(OSError, match=r"src: Not a directory|a symbolic link"):
            list(files)


def test_a_single_file_is_read_as_a_plain_one(tree: Path) -> None:
    (tree / "pg.tar").write_bytes(b"abc")
    assert b"".join(plain_file(tree / "pg.tar")) == b"abc"
    (tree / "link.tar").symlink_to("pg.tar")
    with pytest.raises(RefusedError) as caught:
        list(plain_file(tree / "link.tar"))
    assert str(caught.value) == (
        f'"{tree}/link.tar" cannot be used as source\n'
        'DETAIL:  "link.tar" is a symbolic link\n'
        "HINT:  name its target"
    )
