"""Which account servers run as, and with which rights."""

from __future__ import annotations

import os
import pwd

import pytest

from pgdyno.postgres.process.account import Account, current_account

OURS = "servers and builds of pgdyno"
BECOMING = (
    "sh", "-c", '[ "$PPID" = "$1" ] || exit; shift; unset PWD OLDPWD SHLVL; exec "$@"',
    "sh", str(os.getpid()),
)  # fmt: skip


def user(name: str, uid: int, comment: str = "") -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, comment, "/nonexistent", "/usr/sbin/nologin"))


ROOT, NOBODY, POSTGRES = user("root", 0), user("nobody", 65534), user("postgres", 101, "PostgreSQL")


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ([ROOT, NOBODY, POSTGRES, user("pgdyno", 995, OURS)], "pgdyno"),
        ([ROOT, NOBODY, POSTGRES], "postgres"),
        ([ROOT, NOBODY], "nobody"),
        ([ROOT, NOBODY, POSTGRES, user("pgdyno", 1001, "Ann")], "postgres"),
        ([ROOT, NOBODY, user("pgdyno", 1001, f"{OURS},,,")], "nobody"),
    ],
)
def test_root_takes_the_account_that_setup_has_made_and_no_other_of_that_name(
    monkeypatch: pytest.MonkeyPatch, users: list[pwd.struct_passwd], expected: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    found = current_account()
    assert (found.name, found.is_other) == (expected, True)
    assert found.uid == next(one.pw_uid for one in users if one.pw_name == expected)


def test_another_account_gains_no_privileges_and_keeps_no_capabilities() -> None:
    assert Account("pgdyno", 995, 994, is_other=True).command(["postgres", "-D", "/data"], cpus=(0, 2)) == [
        "setpriv", "--pdeathsig=KILL", "--no-new-privs", "--reuid=995", "--regid=994", "--init-groups",
        "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all",
        *BECOMING, "taskset", "--cpu-list", "0,2", "postgres", "-D", "/data",
    ]  # fmt: skip


def test_the_callers_own_programs_gain_no_privileges_either() -> None:
    command = Account("ann", 1000, 1000, is_other=False).command(["postgres"])
    assert command == ["setpriv", "--pdeathsig=KILL", "--no-new-privs", *BECOMING, "postgres"]


def test_another_account_has_neither_roots_secrets_nor_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("PATH", "/home/ann/bin:/usr/bin")
    found = Account("pgdyno", 995, 994, is_other=True).environment()
    assert "AWS_SECRET_ACCESS_KEY" not in found
    assert found["PATH"] == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert Account("ann", 1000, 1000, is_other=False).environment()["PATH"] == "/home/ann/bin:/usr/bin"
