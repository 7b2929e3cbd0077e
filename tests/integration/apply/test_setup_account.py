"""``pgdyno setup --account`` on a copy of /etc: made, used, removed, and killed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.own_etc import OwnEtc, own_etc

pytestmark = pytest.mark.root

SECRET = "in-roots-environment-only"  # noqa: S105 — that is the test
NO_CAPABILITIES = "0" * 16


@pytest.fixture
def etc() -> Iterator[OwnEtc]:
    """A copy of /etc that a test may change."""
    with own_etc() as made:
        yield made


def test_it_is_made_shown_and_removed(etc: OwnEtc) -> None:
    before = etc.users()
    made = etc.pgdyno("setup", "--account")
    uid = etc.uid()
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.splitlines() == [
        (
            f"account pgdyno created, uid {uid}: "
            "root's scratch servers, load generators and builds run as this account"
        ),
        "undo: pgdyno revert --host-only",
    ]
    assert f"pgdyno:x:{etc.uid()}:" in etc.users()["passwd"]
    assert ":servers and builds of pgdyno:/nonexistent:/usr/sbin/nologin\n" in etc.users()["passwd"]
    assert "\npgdyno:!" in etc.users()["shadow"]  # no password lets anyone in
    again = etc.pgdyno("setup", "--account")
    assert (again.returncode, again.stdout) == (0, f"account pgdyno already exists, uid {etc.uid()}\n")
    status = etc.pgdyno("status").stdout
    assert (
        "account pgdyno  system account, home /nonexistent, shell /usr/sbin/nologin (was not set)" in status
    )
    reverted = etc.pgdyno("revert")  # no server is asked
    assert reverted.returncode == 0, reverted.stderr
    assert reverted.stdout.startswith("1 change undone on ")
    assert reverted.stdout.endswith("shell /usr/sbin/nologin → not set\n")
    assert etc.users() == before
    assert etc.pgdyno("status").stdout.startswith("Nothing is applied.")


@pytest.mark.parametrize(
    ("making", "detail"),
    [
        ("useradd --comment Ann --shell /bin/sh pgdyno", 'comment "Ann", home /home/pgdyno, shell /bin/sh'),
        ("groupadd --gid 4711 pgdyno", "group without its user, gid 4711"),
    ],
)
def test_a_name_that_is_taken_is_refused_and_left_alone(etc: OwnEtc, making: str, detail: str) -> None:
    assert etc.run(*making.split()).returncode == 0
    before = etc.users()
    done = etc.pgdyno("setup", "--account")
    assert done.returncode == 4
    assert 'the name "pgdyno" is taken by a user or group unlike the one pgdyno creates' in done.stderr
    assert detail in done.stderr
    assert etc.users() == before
    assert etc.pgdyno("status").stdout.startswith("Nothing is applied.")


def test_programs_are_found_where_root_keeps_them(etc: OwnEtc, tmp_path: Path) -> None:
    fake = tmp_path / "useradd"
    fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n")
    fake.chmod(0o755)
    done = etc.pgdyno("setup", "--account", PATH=f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "called").exists()


def test_what_useradd_refuses_is_told_and_leaves_nothing(etc: OwnEtc) -> None:
    before = etc.users()
    (etc.etc / "passwd.lock").mkdir()  # which useradd can neither take nor remove
    done = etc.pgdyno("setup", "--account")
    assert done.returncode == 1
    assert "ERROR:  useradd failed with status 1" in done.stderr
    assert "cannot lock /etc/passwd" in done.stderr
    assert etc.users() == before
    assert etc.pgdyno("status").stdout.startswith("Nothing is applied.")


def test_a_setup_that_is_killed_after_any_step_is_undone(etc: OwnEtc) -> None:
    report = json.loads(etc.driven("kill setup"))
    assert [step for step, _, _ in report] == [
        "receipt account pgdyno", "rehearsed account pgdyno", "changed account pgdyno",
        "applied account pgdyno", "verified account pgdyno", "done",
    ]  # fmt: skip
    assert [has_changed for _, has_changed, _ in report] == [False, False, True, True, True, True]
    assert all(is_restored for _, _, is_restored in report), report


def test_a_revert_that_is_killed_after_any_step_is_finished_by_the_next_one(etc: OwnEtc) -> None:
    report = json.loads(etc.driven("kill revert"))
    assert [step for step, _, _ in report] == [
        "restoring account pgdyno", "restored account pgdyno", "reverted account pgdyno", "done",
    ]  # fmt: skip
    assert [is_gone for _, is_gone, _ in report] == [False, True, True, True]
    assert all(is_restored for _, _, is_restored in report), report


def test_a_setup_that_is_killed_at_any_moment_is_undone(etc: OwnEtc) -> None:
    found = json.loads(etc.driven("kill at any moment"))
    assert found["restored"] == found["killed"], found


def test_half_of_an_account_is_removed(etc: OwnEtc) -> None:
    assert json.loads(etc.driven("half")) == [["group", True, True, True], ["passwd", True, True, True]]


def test_it_is_not_removed_while_processes_run_as_it(etc: OwnEtc) -> None:
    before = etc.users()
    etc.pgdyno("setup", "--account")
    during = etc.users()
    found = json.loads(etc.driven("in use"))
    by_hand = f"by hand, as root: find {etc.home} -user pgdyno -delete; userdel pgdyno"
    assert found["code"] == 3
    assert found["said"].splitlines() == [
        "pgdyno: ERROR:  the account pgdyno is in use; something is still changed  (PGD-700)",
        f"DETAIL:  processes that must end first: {found['pid']} (sleep)",
        f"HINT:  pgdyno revert --host-only; {by_hand}",
    ]
    assert etc.users() == during != before
    assert etc.pgdyno("revert", "--host-only").returncode == 0
    assert etc.users() == before


@pytest.mark.server
@pytest.mark.usefixtures("pg18_bin")
def test_servers_and_load_run_as_it_and_data_sets_change_with_the_account(etc: OwnEtc) -> None:
    before = json.loads(etc.driven("serve"))
    assert before["account"] in ("postgres", "nobody")
    etc.pgdyno("setup", "--account")
    uid = etc.uid()
    found = json.loads(etc.driven("serve", AWS_SECRET_ACCESS_KEY=SECRET, LC_TIME="C", LD_BIND_NOW=SECRET))
    assert (found["account"], found["owner"], found["rows"]) == ("pgdyno", uid, [100_000])
    assert (found["data set"], before["owner"] != uid) == (before["data set"], True)
    for one in (found["server"], found["driver"]):
        assert one["Uid"].split() == [str(uid)] * 4
        assert one["NoNewPrivs"] == "1"
        assert {name: one[name] for name in one if name.startswith("Cap")} == dict.fromkeys(
            ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), NO_CAPABILITIES
        )
        assert not [variable for variable in one["environment"] if SECRET in variable]
        names = {variable.partition("=")[0] for variable in one["environment"]}
        assert {"PATH", "LC_TIME"} <= names
        assert not names & {"HOME", "USER", "LOGNAME", "LD_BIND_NOW"}
    assert owners(etc.home, uid) != []
    assert etc.pgdyno("revert", "--host-only").returncode == 0
    assert owners(etc.home, uid) == []
    assert json.loads(etc.driven("account")) == before["account"]


def owners(home: Path, uid: int) -> list[Path]:
    """Return the files that a user owns."""
    return [path for path in home.rglob("*") if path.lstat().st_uid == uid]
