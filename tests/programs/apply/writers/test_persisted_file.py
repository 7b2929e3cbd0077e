"""Files that set values at the start of the machine, in a directory that looks like one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.fix_disk import small_disk

from pgdyno.apply.writers.persisted_file import PersistedFileWriter
from pgdyno.base.errors import OwnershipError, PrivilegeError, StorageError

SYSCTLS, RULES = "/etc/sysctl.d/60-pgdyno.conf", "/etc/udev/rules.d/60-pgdyno.rules"
TEXT = "# ours\n\nvm.swappiness = 10\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc/sysctl.d").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def writer(root: Path) -> PersistedFileWriter:
    return PersistedFileWriter(root)


def everything(root: Path) -> dict[str, tuple[bytes | None, int, int, int]]:
    """Return every file and directory with what a revert has to give back."""
    return {str(path.relative_to(root)): described(path) for path in root.rglob("*")}


def described(path: Path) -> tuple[bytes | None, int, int, int]:
    found = path.stat()
    content = path.read_bytes() if path.is_file() else None
    return content, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid


def test_a_file_that_was_not_there_is_taken_away_again(root: Path, writer: PersistedFileWriter) -> None:
    before = everything(root)
    found = writer.read(SYSCTLS)
    assert found.value is None
    writer.write(SYSCTLS, TEXT)
    assert described(root / "etc/sysctl.d/60-pgdyno.conf")[:2] == (TEXT.encode(), 0o644)
    writer.restore(SYSCTLS, found)
    writer.restore(SYSCTLS, found)
    assert everything(root) == before


def test_directories_that_were_made_for_it_go_with_it(root: Path, writer: PersistedFileWriter) -> None:
    before = everything(root)
    found = writer.read(RULES)
    mask = os.umask(0o077)
    try:
        writer.write(RULES, TEXT)
    finally:
        os.umask(mask)
    assert described(root / "etc/udev/rules.d")[1] == 0o755
    writer.restore(RULES, found)
    assert everything(root) == before


def test_a_directory_in_which_somebody_else_has_put_something_stays(
    root: Path, writer: PersistedFileWriter
) -> None:
    found = writer.read(RULES)
    writer.write(RULES, TEXT)
    (root / "etc/udev/rules.d/99-theirs.rules").write_text("theirs\n")
    writer.restore(RULES, found)
    assert [path.name for path in root.glob("etc/udev/rules.d/*")] == ["99-theirs.rules"]


@pytest.mark.parametrize("content", [b"their own\n", b"not \xff text, and no line feed at its end"])
def test_a_former_file_comes_back_to_the_byte_with_its_mode(
    root: Path, writer: PersistedFileWriter, content: bytes
) -> None:
    file = root / "etc/sysctl.d/60-pgdyno.conf"
    file.write_bytes(content)
    file.chmod(0o640)
    before = everything(root)
    found = writer.read(SYSCTLS)
    writer.write(SYSCTLS, TEXT)
    assert file.read_text() == TEXT
    writer.restore(SYSCTLS, found)
    assert everything(root) == before


@pytest.mark.root
def test_a_former_file_comes_back_to_its_owner(root: Path, writer: PersistedFileWriter) -> None:
    file = root / "etc/sysctl.d/60-pgdyno.conf"
    file.write_text("their own\n")
    os.chown(file, 4711, 4712)
    found = writer.read(SYSCTLS)
    writer.write(SYSCTLS, TEXT)
    assert described(file)[2:] == (0, 0)
    writer.restore(SYSCTLS, found)
    assert described(file)[2:] == (4711, 4712)


def test_what_a_killed_process_left_beside_the_file_goes_with_it(
    root: Path, writer: PersistedFileWriter
) -> None:
    before = everything(root)
    found = writer.read(SYSCTLS)
    (root / "etc/sysctl.d/60-pgdyno.conf.pgdyno-new").write_text("half of")
    writer.restore(SYSCTLS, found)
    assert everything(root) == before


def test_a_checksum_is_what_is_read_back(writer: PersistedFileWriter) -> None:
    assert writer.verify(SYSCTLS) == "no file"
    writer.write(SYSCTLS, "vm.swappiness = 10\n")
    # printf 'vm.swappiness = 10\n' | sha256sum
    assert writer.verify(SYSCTLS) == "sha256 a7b7a3e68e1e"
    assert writer.meets(SYSCTLS, "vm.swappiness = 10\n", "sha256 a7b7a3e68e1e")
    assert not writer.meets(SYSCTLS, "vm.swappiness = 1\n", "sha256 a7b7a3e68e1e")


def test_a_link_is_not_written_through(root: Path, writer: PersistedFileWriter) -> None:
    """An administrator switches a file off by a link of its name to /dev/null."""
    (root / "etc/sysctl.d/60-pgdyno.conf").symlink_to("/dev/null")
    with pytest.raises(OwnershipError) as caught:
        writer.check(SYSCTLS)
    assert str(caught.value) == (
        "/etc/sysctl.d/60-pgdyno.conf is not a regular file: it was replaced by something else\n"
        "HINT:  remove it, or omit --persist"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_closed_directory_is_refused_before_anything_is_changed(
    root: Path, writer: PersistedFileWriter
) -> None:
    (root / "etc/sysctl.d").chmod(0o555)
    with pytest.raises(PrivilegeError, match="cannot write"):
        writer.check(SYSCTLS)


def test_a_directory_on_a_read_only_disk_is_refused_before_anything_is_changed(
    writer: PersistedFileWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /etc is on machines that are images; root is told the same as everybody."""
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    with pytest.raises(PrivilegeError) as caught:
        writer.check(RULES)
    assert str(caught.value) == (
        "cannot write /etc/udev/rules.d/60-pgdyno.rules\n"
        "DETAIL:  /etc is not writable for this user\n"
        "HINT:  run pgdyno as root, or omit --persist"
    )


@pytest.mark.root
def test_a_full_disk_leaves_the_former_file() -> None:
    with small_disk() as disk:
        writer = PersistedFileWriter(disk.directory)
        writer.write(SYSCTLS, TEXT)
        disk.fill()
        with pytest.raises(StorageError) as caught:
            writer.write(SYSCTLS, "#" * 8192)
        assert str(caught.value) == (
            "could not write /etc/sysctl.d/60-pgdyno.conf\nDETAIL:  No space left on device"
        )
        assert writer.value_if_any(SYSCTLS) == TEXT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes where others could mislead it")
def test_a_directory_that_is_not_roots_is_not_written_in(root: Path, writer: PersistedFileWriter) -> None:
    found = writer.read(SYSCTLS)
    os.chown(root / "etc/sysctl.d", 4711, 4712)
    with pytest.raises(OwnershipError) as caught:
        writer.check(SYSCTLS)
    assert caught.value.message == f"cannot write {SYSCTLS}"
    assert caught.value.detail == f"directory {root}/etc/sysctl.d belongs to user 4711, not to root"
    with pytest.raises(StorageError, match=f"could not write {SYSCTLS}"):
        writer.write(SYSCTLS, TEXT)
    with pytest.raises(StorageError, match=f"could not write {SYSCTLS}"):
        writer.restore(SYSCTLS, found)
    assert list((root / "etc/sysctl.d").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes where others could mislead it")
def test_no_directory_is_made_in_one_that_is_not_roots(root: Path, writer: PersistedFileWriter) -> None:
    os.chown(root / "etc", 4711, 4712)
    with pytest.raises(StorageError, match=f"could not write {RULES}"):
        writer.write(RULES, TEXT)
    assert [path.name for path in (root / "etc").iterdir()] == ["sysctl.d"]
