"""The account of pgdyno's own, as the system's user database has it."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
from pathlib import Path

import pytest

from pgdyno.apply.writers.account import AccountWriter, remove_files
from pgdyno.base.errors import OwnershipError, PgdynoError, PrivilegeError, ServerError
from pgdyno.base.ports import Found

KEY, WANTED = "account pgdyno", "system account, home /nonexistent, shell /usr/sbin/nologin"
OURS = "servers and builds of pgdyno"
DAEMON = 1  # a user who is on every Linux


def register(
    monkeypatch: pytest.MonkeyPatch,
    comment: str | None,
    *,
    login: str = "/usr/sbin/nologin",
    gid: int | None = 994,
) -> None:
    """Let the system have a user of that name, and a group. None: there is no such user, or group."""

    def getpwnam(name: str) -> pwd.struct_passwd:
        assert name == "pgdyno"
        if comment is None:
            raise KeyError(name)
        return pwd.struct_passwd((name, "x", 995, 994, comment, "/nonexistent", login))

    def getgrnam(name: str) -> grp.struct_group:
        assert name == "pgdyno"
        if gid is None:
            raise KeyError(name)
        return grp.struct_group((name, "x", gid, []))

    monkeypatch.setattr(pwd, "getpwnam", getpwnam)
    monkeypatch.setattr(grp, "getgrnam", getgrnam)


@pytest.mark.parametrize(
    ("comment", "shell", "gid", "value", "is_on_the_way"),
    [
        (None, "", None, None, False),
        (OURS, "/usr/sbin/nologin", 994, WANTED, False),
        (OURS, "/usr/sbin/nologin", None, "user without its group", True),
        (OURS, "/usr/sbin/nologin", 7, "user without its group", True),
        (None, "", 994, "group without its user, gid 994", True),
        (OURS, "/bin/bash", 994,
         f'user with uid 995, comment "{OURS}", home /nonexistent, shell /bin/bash', False),
        ("Ann", "/bin/sh", 994, 'user with uid 995, comment "Ann", home /nonexistent, shell /bin/sh', False),
    ],
)  # fmt: skip
def test_an_account_is_told_in_words(
    monkeypatch: pytest.MonkeyPatch,
    comment: str | None,
    shell: str,
    gid: int | None,
    value: str | None,
    is_on_the_way: bool,  # noqa: FBT001
) -> None:
    register(monkeypatch, comment, login=shell, gid=gid)
    writer = AccountWriter(Path("/var/lib/pgdyno"))
    assert writer.read(KEY) == Found(value, {"files_below": "/var/lib/pgdyno"})
    assert writer.verify(KEY) == writer.value_if_any(KEY) == value
    assert writer.is_on_the_way(value or "", "", WANTED) is is_on_the_way
    assert writer.meets(KEY, WANTED, value or "") is (value == WANTED)


def refusal(kind: type[PgdynoError]) -> str:
    with pytest.raises(kind) as caught:
        AccountWriter(Path("/var/lib/pgdyno")).check(KEY)
    return str(caught.value)


def test_it_takes_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert refusal(PrivilegeError) == (
        "only root can create the account pgdyno\nHINT:  sudo pgdyno setup --account"
    )


def test_missing_programs_are_named_with_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "useradd" else f"/usr/sbin/{name}")
    assert refusal(ServerError) == (
        "the account pgdyno cannot be created on this host\nDETAIL:  missing: useradd\n"
        "HINT:  install the package passwd (Debian, Ubuntu) or shadow-utils (RHEL, Fedora)"
    )


def test_a_user_whom_pgdyno_did_not_make_is_described_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/sbin/{name}")
    register(monkeypatch, "Ann", login="/bin/bash")
    told = (
        'the name "pgdyno" is taken by a user or group unlike the one pgdyno creates\n'
        'DETAIL:  user with uid 995, comment "Ann", home /nonexistent, shell /bin/bash\n'
        "HINT:  pgdyno runs nothing as this user; rename or remove it, then try again"
    )
    assert refusal(OwnershipError) == told
    with pytest.raises(OwnershipError) as caught:  # starts no program: see conftest.py
        AccountWriter().restore(KEY, Found(None, {"files_below": "/var/lib/pgdyno"}))
    assert str(caught.value) == told


@pytest.mark.root
def test_only_the_accounts_files_are_removed_and_links_are_not_followed(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for path in ("datasets/theirs/base", "datasets/ours/base", "experiments", "builds/built-1/source"):
        (home / path).mkdir(parents=True)
    for path in (
        "datasets/theirs/base/1",
        "datasets/ours/base/1",
        "experiments/1",
        "builds/built-1/source/1",
    ):
        (home / path).write_text("precious")
    elsewhere.mkdir()
    (elsewhere / "file").write_text("precious")
    (home / "link").symlink_to(elsewhere)
    for path in ("datasets/theirs", "builds/built-1/source", "experiments/1", "link"):
        os.chown(home / path, DAEMON, DAEMON, follow_symlinks=False)
    remove_files(home, DAEMON)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir()}
    assert left == {"home/datasets/ours/base/1", "elsewhere/file"}
    assert (home / "builds/built-1").is_dir()
    assert not (home / "link").is_symlink()
