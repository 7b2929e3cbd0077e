"""A directory is opened once, and all that is done in it is done with its owner's rights."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.apply.data_directory import GROUP, OWNER, give_to_owner

from pgdyno.host.files.directory import Directory, UntrustedError, opened_directory, roots_directory
from pgdyno.host.files.walk import acting_as

ANOTHER = 4713
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user takes root")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory of the server's user."""
    (tmp_path / "place").mkdir()
    return give_to_owner(tmp_path / "place")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("making a device takes root")
    os.mknod(path, 0o020666, os.makedev(1, 5))  # as /dev/zero


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))  # its path may have no more than 107 characters


def large(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.timeout(60)  # none of these may keep root waiting
@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(fifo, '"it" is not a regular file', id="fifo"),
        pytest.param(endless, '"it" is not a regular file', id="endless"),
        pytest.param(Path.mkdir, '"it" is not a regular file', id="directory"),
        pytest.param(lambda path: path.symlink_to("other"), '"it" is a symbolic link', id="link"),
        pytest.param(large, '"it" is larger than the limit of 1048576 bytes', id="large"),
        pytest.param(listening, "No such device or address", id="socket"),
    ],
)
def test_what_is_no_plain_file_of_usual_size_is_not_read(
    place: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], why: str
) -> None:
    monkeypatch.chdir(place)
    (place / "other").write_text("other")
    make(place / "it")
    give_to_owner(place / "it")
    with opened_directory(place) as directory, pytest.raises(OSError) as caught:  # noqa: PT011 — its text follows
        directory.read("it")
    assert caught.value.strerror == why


@needs_root
def test_a_file_of_another_user_is_not_read(place: Path) -> None:
    (place / "it").write_text("root's, and readable to all")
    with opened_directory(place) as directory, pytest.raises(UntrustedError) as caught:
        directory.read("it")
    assert caught.value.strerror == '"it" belongs to user 0, but its directory belongs to user 4711'
    assert caught.value.hint == "change its owner to user 4711, as the server requires"


@needs_root
def test_root_has_no_more_rights_there_than_the_owner(place: Path) -> None:
    (place / "it").write_text("root's")
    (place / "it").chmod(0o600)
    with opened_directory(place) as directory:
        with pytest.raises(PermissionError):
            directory.read("it")
        directory.create("new", b"x", 0o640, (OWNER, GROUP))
    made = (place / "new").stat()
    assert (made.st_uid, made.st_gid, made.st_mode & 0o7777) == (OWNER, GROUP, 0o640)


@needs_root
def test_a_file_keeps_its_group_whatever_the_group_of_the_directory(place: Path) -> None:
    os.chown(place, OWNER, GROUP + 1)
    with opened_directory(place) as directory:
        directory.create("it", b"x", 0o600, (OWNER, GROUP))
    assert (place / "it").stat().st_gid == GROUP


@needs_root
def test_a_file_is_made_for_nobody_but_the_owner(place: Path) -> None:
    with opened_directory(place) as directory, pytest.raises(UntrustedError):
        directory.create("it", b"x", 0o600, (0, 0))
    assert list(place.iterdir()) == []


@needs_root
@pytest.mark.parametrize("owner", [0, OWNER])
def test_a_link_of_root_or_of_the_owner_is_followed(tmp_path: Path, place: Path, owner: int) -> None:
    link = tmp_path / "link"
    link.symlink_to("place")
    os.lchown(link, owner, owner)
    with opened_directory(link) as directory:
        assert os.path.samestat(os.fstat(directory.descriptor), place.stat())


@needs_root
@pytest.mark.parametrize("leads_to", [0, OWNER])
def test_a_link_of_somebody_else_is_not_followed(tmp_path: Path, place: Path, leads_to: int) -> None:
    link = tmp_path / "link"
    link.symlink_to(place)
    os.lchown(link, ANOTHER, ANOTHER)
    os.chown(place, leads_to, leads_to)
    with pytest.raises(UntrustedError) as caught, opened_directory(link):
        pass
    assert caught.value.strerror == (
        f"the symbolic link {link} belongs to user 4713, but it leads {link} to a directory of "
        f"user {leads_to}"
    )
    assert caught.value.hint == "name the directory by a path without that link"


@needs_root
def test_a_directory_of_root_below_anothers_is_not_roots_place(place: Path) -> None:
    inner = place / "inner"
    inner.mkdir()
    with pytest.raises(UntrustedError) as caught, opened_directory(inner):
        pass
    why = f"directory {inner} belongs to root, but its parent {place} belongs to user 4711"
    assert caught.value.strerror == why


@needs_root
def test_what_is_roots_own_is_written_in_roots_directories_only(tmp_path: Path, place: Path) -> None:
    with roots_directory(tmp_path) as directory:
        assert directory.owner == 0
    with pytest.raises(UntrustedError) as caught, roots_directory(place):
        pass
    assert caught.value.strerror == f"directory {place} belongs to user 4711, not to root"


def test_a_way_of_too_many_links_ends(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with (
        pytest.raises(OSError, match="Too many levels of symbolic links"),
        opened_directory(tmp_path / "loop"),
    ):
        pass


def test_a_path_goes_up_and_through_links_as_the_kernel_does(tmp_path: Path, place: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/up").symlink_to(f"../../{tmp_path.name}/./other")
    (tmp_path / "all").symlink_to(tmp_path)
    with opened_directory(tmp_path / "all/other/up/../place") as directory:
        assert os.path.samestat(os.fstat(directory.descriptor), place.stat())


def test_a_file_on_the_way_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError), opened_directory(tmp_path / "file"):
        pass


def test_what_is_exchanged_later_changes_nothing(tmp_path: Path, place: Path) -> None:
    (tmp_path / "victim").mkdir()
    with opened_directory(place) as directory:
        place.rename(tmp_path / "away")
        place.symlink_to("victim")
        directory.create("it", b"x", 0o600, None)
        directory.rename("it", "that")
    assert list((tmp_path / "victim").iterdir()) == []
    assert (tmp_path / "away/that").read_bytes() == b"x"


@needs_root
def test_a_link_keeps_its_owner(place: Path) -> None:
    with opened_directory(place) as directory:
        directory.create_link("it", "there", (ANOTHER, ANOTHER))
    made = (place / "it").lstat()
    assert ((place / "it").readlink(), made.st_uid, made.st_gid) == (Path("there"), ANOTHER, ANOTHER)


@needs_root
def test_what_stands_in_the_place_of_a_new_link_is_given_to_nobody(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner puts a file of his there, which is to become root's."""
    make = os.symlink

    def exchanged(target: str, name: str, *, dir_fd: int) -> None:
        make(target, name, dir_fd=dir_fd)
        os.unlink(name, dir_fd=dir_fd)
        os.close(os.open(name, os.O_CREAT, dir_fd=dir_fd))

    monkeypatch.setattr(os, "symlink", exchanged)
    with opened_directory(place) as directory, pytest.raises(UntrustedError, match='has replaced "it"'):
        directory.create_link("it", "there", (0, 0))
    assert (place / "it").stat().st_uid == OWNER


@needs_root
def test_other_threads_keep_their_rights_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def touch(name: str) -> None:
        Path(name).touch()

    def touch_meanwhile() -> None:
        acting.wait(10)
        touch("of another thread")

    tmp_path.chmod(0o777)
    monkeypatch.chdir(tmp_path)
    acting = threading.Event()
    other = threading.Thread(target=touch_meanwhile)
    other.start()
    with acting_as(OWNER, GROUP):
        acting.set()
        other.join()
        touch("of this one")
    touch("afterwards")
    owners = {path.name: path.stat().st_uid for path in tmp_path.iterdir()}
    assert owners == {"of another thread": 0, "of this one": OWNER, "afterwards": 0}


@needs_root
def test_where_the_kernel_does_not_let_root_be_another_user_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refusing:
        """As in a container without CAP_SETUID."""

        def setfsuid(self, _: int) -> int:
            return 0

        setfsgid = setfsuid

    monkeypatch.setattr("pgdyno.host.files.walk._LIBC", Refusing())
    why = "does not allow acting as user 4711, group 4712"
    with pytest.raises(PermissionError, match=why), acting_as(OWNER, GROUP):
        pytest.fail("it acts with root's rights")


def test_a_directory_says_what_it_has(place: Path) -> None:
    (place / "it").symlink_to("nowhere")
    with opened_directory(place) as directory:
        assert isinstance(directory, Directory)
        assert (directory.has("it"), directory.has("other")) == (True, False)
