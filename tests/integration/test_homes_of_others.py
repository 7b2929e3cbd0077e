"""Root in a home of another user: nothing there is followed, restored or removed with root's rights."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer
from tests.integration.own_etc import own_etc

import pgdyno as pgdyno_package
from pgdyno.apply.ledger.log import open_journal
from pgdyno.apply.runs.host_run import host_target
from pgdyno.base.errors import StorageError
from pgdyno.base.ports import Found
from pgdyno.model.plans.journal import Receipt, ReceiptState, checksum
from pgdyno.model.plans.plan import PERSISTED_FILE, Change, Effect
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.root

NOBODY = 65534
EVIL = "* * * * * root id\n"
KEPT = "a file of root's\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of root's, in a directory of root's."""
    path = tmp_path / "roots/crontab"
    path.parent.mkdir()
    path.write_text(KEPT)
    return path


@pytest.fixture
def forged(tmp_path: Path, victim: Path) -> Path:
    """A home with a receipt by which that file had another content before; it belongs to root as yet."""
    state = {"setting": checksum(EVIL), "made": "", "mode": str(0o644), "owner": "0", "group": "0"}
    change = Change("x", PERSISTED_FILE, str(victim), None, KEPT, Effect.IMMEDIATE)
    receipt = Receipt(
        "a/1", "a", "2026-11-28T00:00:00+00:00", "pgdyno", host_target(), change, Found(EVIL, state)
    )
    home = tmp_path / "home"
    with open_journal(home / "journal") as journal:
        journal.add(receipt)
        journal.advance(receipt, ReceiptState.APPLIED)
    return home


def give(*paths: Path) -> None:
    for path in paths:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def give_all(home: Path) -> None:
    give(home, home / "journal", *(home / "journal").iterdir())


def open_to_all(home: Path) -> None:
    home.chmod(0o777)


def open_journal_to_all(home: Path) -> None:
    (home / "journal/journal.jsonl").chmod(0o666)


def lead_away(home: Path) -> None:
    """The journal is a link of another user's, to a directory of that user's."""
    (home / "journal").rename(home / "theirs")
    (home / "journal").symlink_to(home / "theirs")
    give(home / "journal", home / "theirs", *(home / "theirs").iterdir())


@pytest.mark.parametrize(
    ("spoil", "whose"),
    [
        (give_all, "belongs to nobody, but you are root"),
        (lambda home: give(home / "journal"), "belongs to nobody, but you are root"),
        (lambda home: give(home / "journal/journal.jsonl"), "belongs to nobody, but you are root"),
        (lambda home: give(home.parent), "belongs to nobody, but you are root"),
        (lead_away, "belongs to nobody, but you are root"),
        (open_to_all, "can be changed by everyone"),
        (open_journal_to_all, "can be changed by everyone"),
    ],
)
@pytest.mark.parametrize("command", [("revert", "--host-only"), ("status",)])
def test_a_journal_that_others_could_have_written_is_not_used(
    forged: Path, victim: Path, spoil: Callable[[Path], None], whose: str, command: tuple[str, ...]
) -> None:
    spoil(forged)
    done = pgdyno(*command, PGDYNO_HOME=str(forged))
    assert victim.read_text() == KEPT
    assert done.returncode == 4, done.stdout
    assert f"ERROR:  {forged}" in done.stderr
    assert whose in done.stderr
    assert "values in its journal are restored with your rights" in done.stderr


def test_the_refusal_names_how_to_work_as_the_owner(forged: Path) -> None:
    give_all(forged)
    done = pgdyno("status", PGDYNO_HOME=str(forged))
    assert done.stderr.splitlines()[-1] == (
        f'HINT:  run pgdyno as that user: env -i PATH="$PATH" PGDYNO_HOME={forged} '
        "runuser --pty -u nobody -- pgdyno status"
    )


def test_a_receipt_that_pgdyno_cannot_have_written_is_damage_in_roots_own_journal(
    forged: Path, victim: Path
) -> None:
    done = pgdyno("revert", "--host-only", PGDYNO_HOME=str(forged))
    assert victim.read_text() == KEPT
    assert f'pgdyno does not make changes of kind "persisted_file" to {victim}' in done.stdout


def test_a_lock_that_leads_to_a_file_of_roots_is_not_followed(tmp_path: Path, victim: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "measuring.lock").symlink_to(victim)
    with pytest.raises(StorageError) as caught, Workspace(home, caller()).measuring():
        pass
    assert (caught.value.message, caught.value.detail) == (
        f"could not open {home}/measuring.lock",
        "Too many levels of symbolic links",
    )
    assert victim.read_text() == KEPT


def test_a_lock_of_a_scratch_directory_is_not_followed(tmp_path: Path, victim: Path) -> None:
    left = tmp_path / "home/scratch/run-left"
    left.mkdir(parents=True)
    (left / "in-use.lock").symlink_to(victim)
    with pytest.raises(StorageError), Workspace(tmp_path / "home", caller()).measuring():
        pass
    assert victim.read_text() == KEPT
    assert left.is_dir()


@pytest.mark.parametrize("name", ["scratch", "datasets", "experiments"])
def test_directories_of_another_user_in_roots_home_are_not_used(tmp_path: Path, name: str) -> None:
    """As in a home that was given to root, and what is in it was not."""
    theirs = tmp_path / name
    theirs.mkdir()
    give(theirs)
    place = Workspace(tmp_path, caller())
    use = {"scratch": lambda: place.scratch().__enter__(), "datasets": place.datasets}
    with pytest.raises(StorageError, match=f"{theirs} belongs to user {NOBODY}, but you are user 0"):
        use.get(name, place.experiments)()
    assert list(theirs.iterdir()) == []


IN_THERE = """
set -e
mount --bind "$BASE" "$PLACE/python"
mount --bind "$SITE" "$PLACE/site"
mount --bind "$SOURCE" "$PLACE/source"
if ! grep -q ^bob: /etc/passwd; then
    echo "bob:x:64999:64999::$PLACE/bob:/bin/sh" >> /etc/passwd; echo bob:x:64999: >> /etc/group
    chown --recursive 64999:64999 "$PLACE/bob"
fi
PATH=$PLACE/bin:$PATH
"""
"""A user with a home, and what each user can run pgdyno with, whoever may look where the tests have it."""

PROGRAM = """#!/bin/sh
export PYTHONHOME={place}/python PYTHONPATH={place}/source:{place}/site LD_LIBRARY_PATH={place}/python/lib
exec {place}/python/bin/{python} -m pgdyno "$@"
"""


@pytest.fixture
def as_root(scratch_pg18: RealServer) -> Iterator[Callable[[str], tuple[str, str]]]:
    """Run a shell command as root where there is a user bob; returns its two outputs."""
    scratch_pg18.execute("CREATE ROLE bob SUPERUSER LOGIN PASSWORD 'a-Pa55word'")
    with own_etc() as etc:
        place = etc.home.parent
        for name in ("python", "site", "source", "bin", "bob"):
            (place / name).mkdir()
        program = place / "bin/pgdyno"
        program.write_text(PROGRAM.format(place=place, python=Path(sys.executable).resolve().name))
        program.chmod(0o755)
        password = place / "bob/.pgpass"
        password.write_text("*:*:*:bob:a-Pa55word\n")
        password.chmod(0o600)
        there = {
            "PLACE": str(place),
            "BASE": sys.base_prefix,
            "SITE": sysconfig.get_path("purelib"),
            "SOURCE": str(Path(pgdyno_package.__file__).parents[1]),
            "OF_ROOT": "a secret",
        }

        def run(command: str) -> tuple[str, str]:
            done = etc.run("sh", "-c", IN_THERE + command, **there)
            return done.stdout, done.stderr

        yield run


def applied(server: RealServer) -> list[tuple[object, ...]]:
    """Return the settings in postgresql.auto.conf."""
    return server.execute("SELECT name FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'")


@pytest.mark.server
@pytest.mark.parametrize("of_root", ["unset PGDYNO_HOME; ", ""])
def test_the_command_that_status_names_undoes_what_another_user_has_changed(
    scratch_pg18: RealServer, as_root: Callable[[str], tuple[str, str]], of_root: str
) -> None:
    """Root has a home named by PGDYNO_HOME, or the usual one; bob has the usual one."""
    dsn = f"host=127.0.0.1 port={scratch_pg18.port} dbname=postgres"
    words = f"--dsn '{dsn}' --lever work_mem --ram 8GB --cpus 2"
    output, errors = as_root(f"unset PGDYNO_HOME; runuser -u bob -- pgdyno apply {words}")
    assert applied(scratch_pg18) == [("work_mem",)], errors
    output, errors = as_root(f"{of_root}pgdyno status; echo place: $PLACE")
    place = Path(output.splitlines()[-1].removeprefix("place: "))
    assert f"another journal: {place}/bob/.local/state/pgdyno/journal (1 change applied)" in output, errors
    (undoing,) = [line.removeprefix("    undo: ") for line in output.splitlines() if "    undo: " in line]
    assert undoing == f"env -i PATH=\"$PATH\" runuser --pty -u bob -- pgdyno revert --dsn '{dsn}'"
    output, errors = as_root(f"{of_root}{undoing}")
    assert applied(scratch_pg18) == [], errors
    assert output.startswith("1 change undone on ")


@pytest.mark.server
def test_the_command_for_a_home_elsewhere_works_as_its_owner(
    scratch_pg18: RealServer, as_root: Callable[[str], tuple[str, str]]
) -> None:
    dsn = f"host=127.0.0.1 port={scratch_pg18.port} dbname=postgres"
    words = f"--dsn '{dsn}' --lever work_mem --ram 8GB --cpus 2"
    elsewhere = "export PGDYNO_HOME=$PLACE/bob/elsewhere; "
    output, errors = as_root(f"{elsewhere}runuser -u bob -- pgdyno apply {words}")
    assert applied(scratch_pg18) == [("work_mem",)], errors
    output, errors = as_root(f"{elsewhere}pgdyno status")
    assert output == ""
    command = errors.partition("HINT:  run pgdyno as that user: ")[2].strip()
    assert command.startswith('env -i PATH="$PATH" PGDYNO_HOME=')
    assert "work_mem" in as_root(command)[0]
    seen = command.replace("pgdyno status", "env")
    assert "USER=bob" in as_root(seen)[0]
    assert "OF_ROOT" not in as_root(seen)[0]
    output, errors = as_root(f"{command.removesuffix('status')}revert --dsn '{dsn}'")
    assert applied(scratch_pg18) == [], errors


@pytest.mark.server
def test_without_root_a_home_of_another_user_is_not_used_either(
    as_root: Callable[[str], tuple[str, str]],
) -> None:
    """The restart command in its journal would run with the caller's rights."""
    theirs = "mkdir $PLACE/theirs; chown nobody $PLACE/theirs; "
    output, errors = as_root(
        f"{theirs}runuser -u bob -- env PGDYNO_HOME=$PLACE/theirs pgdyno revert --host-only || echo $PLACE"
    )
    place = output.strip()
    assert errors.startswith(
        f"pgdyno: ERROR:  {place}/theirs is not used: it belongs to nobody, but you are bob  (PGD-"
    ), output
