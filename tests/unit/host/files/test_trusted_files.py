"""What others could change is not used, and the refusal says whose it is and what to do."""

from __future__ import annotations

import grp
import os
import pwd
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest

from pgdyno.base.errors import RefusedError
from pgdyno.host.files.trusted_files import require_trusted, weakness

NOBODY = pwd.getpwnam("nobody")
Spoil = Callable[[Path], None]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of the caller's in one where everybody may make entries."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-trusted-") as name:
        yield Path(name)


@pytest.fixture
def file(place: Path) -> Path:
    """A file in a directory in it."""
    (place / "lab").mkdir()
    (place / "lab/hosts.toml").touch(0o644)
    return place / "lab/hosts.toml"


def refusal(path: Path) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        require_trusted(path, "it steers a test")
    return caught.value


def test_files_of_the_caller_are_used_also_by_links_of_his(file: Path, place: Path) -> None:
    link = place / "link"
    link.symlink_to(file.parent)
    for path in (file, file.parent, link / "hosts.toml", place / "not/there/yet", Path("/etc/passwd")):
        with does_not_raise():
            require_trusted(path, "it steers a test")


@pytest.mark.root
@pytest.mark.parametrize("spoilt", ["lab/hosts.toml", "lab", "."])
def test_what_belongs_to_another_user_is_named_with_its_owner(file: Path, place: Path, spoilt: str) -> None:
    owned = place / spoilt
    os.chown(owned, NOBODY.pw_uid, -1)
    error = refusal(file)
    of = "it" if owned == file else f"{owned} on its path"
    assert error.message == f"{file} is not used: {of} belongs to nobody, but you are root"
    assert error.detail == "it steers a test: only you and root may be able to change it"
    mended = f"check its content, then run chown root {file}; or " if owned == file else ""
    moved = "move it to a directory that you own, and whose parents only you and root own"
    assert error.hint == f"{mended}{moved}"


@pytest.mark.root
def test_a_link_of_another_user_leads_nowhere(file: Path, place: Path) -> None:
    link = place / "link"
    link.symlink_to(file)
    os.chown(link, NOBODY.pw_uid, -1, follow_symlinks=False)
    said = f"{link} is not used: it belongs to nobody, but you are root"
    assert refusal(link).message == said
    assert "chown" not in str(refusal(link).hint)


@pytest.mark.parametrize("spoilt", ["lab/hosts.toml", "lab", "."])
def test_what_everybody_can_write_is_not_used(file: Path, place: Path, spoilt: str) -> None:
    opened = place / spoilt
    opened.chmod(0o777)
    error = refusal(file)
    assert error.message.endswith(" can be changed by everyone")
    assert f"chmod go-w {opened};" in str(error.hint)


def test_a_directory_for_all_may_lead_there_and_not_be_it(file: Path) -> None:
    file.parent.chmod(0o1777)
    require_trusted(file, "it steers a test")
    assert refusal(file.parent).message.endswith("it can be changed by everyone")


@pytest.mark.root
def test_a_group_that_may_write_is_named(file: Path) -> None:
    group = grp.getgrgid(NOBODY.pw_gid)
    os.chown(file, 0, group.gr_gid)
    file.chmod(0o664)
    assert refusal(file).message == f"{file} is not used: it can be changed by group {group.gr_name}"


def test_the_callers_own_group_may_write(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As useradd makes it for each user, with a umask that lets it write."""
    user = pwd.struct_passwd(("ada", "x", os.geteuid(), 4711, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [user])
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group(("ada", "x", gid, [])))
    status = file.stat()
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0o100664, *status[1:5], 4711, *status[6:])))
    monkeypatch.setattr("pgdyno.host.files.walk._require_directory", lambda *_: None)
    assert weakness(file) is None
    bob = pwd.struct_passwd(("bob", "x", 4712, 4711, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwall", lambda: [user, bob])
    assert weakness(file) is not None


def test_what_cannot_be_followed_is_refused(place: Path) -> None:
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    assert refusal(place / "a").detail == "Too many levels of symbolic links"


@pytest.mark.root
def test_a_name_that_a_shell_would_run_is_quoted(place: Path) -> None:
    file = place / "x; reboot"
    file.touch()
    os.chown(file, NOBODY.pw_uid, -1)
    assert f"chown root '{file}'; or " in str(refusal(file).hint)
