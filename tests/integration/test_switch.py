"""A running server is switched to other programs, and back: Debian's cluster, with a copy of its programs.

The copy lies in a tree of its own, laid out like Debian's, so that it has its own libraries and extensions:
what is taken away there is missing in it, and nowhere else.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
from tests.fix_debian import VERSION, DebianCluster
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, as_unprivileged, running_server
from tests.integration.journal_support import access_to, under_pg_ctl
from tests.integration.killed_at_step import at_every_step, driving

from pgdyno.app.revert import RevertRequest, revert
from pgdyno.journal.access import ServerAccess
from pgdyno.journal.log import read_journal
from pgdyno.journal.query import Connection
from pgdyno.journal.restart import command_restarter
from pgdyno.model.plan import PG_CTL_OPTIONS, PROGRAM_LINK
from pgdyno.server.connection import connect

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.root]

PROGRAMS = Path("/usr/lib/postgresql", VERSION)
SHARED = Path("/usr/share/postgresql", VERSION)
REPLACED = ("postgres", "pg_ctl", "initdb", "pg_controldata")


@pytest.fixture
def other() -> Iterator[Path]:
    """Return the prefix of another PostgreSQL 15, which everybody can run."""
    root = Path(tempfile.mkdtemp(prefix="pgdyno-other-"))
    root.chmod(0o755)
    prefix = root / PROGRAMS.relative_to("/")
    for tree in (PROGRAMS, SHARED):
        shutil.copytree(tree, root / tree.relative_to("/"), symlinks=True, copy_function=linked_copy)
    yield prefix
    shutil.rmtree(root)


def linked_copy(source: str, destination: str) -> str:
    """Give a file a second name, which takes no time; tests take names away and never write into a file."""
    try:
        os.link(source, destination)
    except OSError:  # on another file system
        shutil.copy2(source, destination)
    return destination


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a PGDYNO_HOME that scratch servers can reach."""
    directory = Path(tempfile.mkdtemp(prefix="pgdyno-switch-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def switch(debian15: DebianCluster, home: Path) -> Callable[..., tuple[int, str, str]]:
    """Runs a command of pgdyno on the cluster; returns its status, output and errors."""

    def run(command: str, *arguments: str, restart: bool = True) -> tuple[int, str, str]:
        how = ("--allow-restart", "--restart-command", f"pg_ctlcluster {VERSION} {debian15.name} restart")
        done = pgdyno(
            command, "--dsn", debian15.dsn, *(how if restart else ()), *arguments, PGDYNO_HOME=str(home)
        )
        return done.returncode, done.stdout, done.stderr

    return run


def running(server: DebianCluster | RealServer) -> Path:
    """Return the program of a server's postmaster, by the kernel's account of it."""
    pid = int((server.data_directory / "postmaster.pid").read_text().split()[0])
    return Path(f"/proc/{pid}/exe").readlink()


def pg_ctl_conf(cluster: DebianCluster) -> Path:
    return cluster.configuration_directory / "pg_ctl.conf"


def described(path: Path) -> tuple[bytes, int, int, int]:
    status = path.stat()
    return path.read_bytes(), status.st_mode, status.st_uid, status.st_gid


def test_a_cluster_is_switched_and_reverted(
    debian15: DebianCluster, other: Path, switch: Callable[..., tuple[int, str, str]]
) -> None:
    debian15.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS id")
    debian15.execute("CREATE EXTENSION pgcrypto")
    debian15.execute('CREATE DATABASE "odd \' name"')
    before = described(pg_ctl_conf(debian15))

    code, said, errors = switch("switch", "--to", str(other))
    assert code == 0, errors
    assert running(debian15) == other / "bin/postgres"
    assert said.splitlines()[0] == f"1 change in force on {address(debian15)}, after a restart"
    assert f"pg_ctl_options = '-p {other}/bin/postgres'" in pg_ctl_conf(debian15).read_text()
    assert debian15.execute("SELECT count(*), encode(digest('a', 'md5'), 'hex') FROM kept") == [
        (1000, "0cc175b9c0f1b6a831c399e269772661")
    ]

    code, said, errors = switch("status", restart=False)
    assert code == 0, errors
    assert f"in force: {other}/bin" in said

    code, said, errors = switch("revert")
    assert code == 0, errors
    assert running(debian15) == PROGRAMS / "bin/postgres"
    assert described(pg_ctl_conf(debian15)) == before
    assert switch("status", restart=False)[1].startswith("Nothing is applied.")


def test_other_options_of_pg_ctl_stay(
    debian15: DebianCluster, other: Path, switch: Callable[..., tuple[int, str, str]]
) -> None:
    text = pg_ctl_conf(debian15).read_text().replace("''", "'-t 300'  # slow disk")
    pg_ctl_conf(debian15).write_text(text)
    assert switch("switch", "--to", str(other))[0] == 0
    assert (
        f"pg_ctl_options = '-t 300 -p {other}/bin/postgres'  # slow disk" in pg_ctl_conf(debian15).read_text()
    )
    assert switch("revert")[0] == 0
    assert pg_ctl_conf(debian15).read_text() == text


def test_nothing_is_changed_by_a_dry_run_nor_without_permission_to_restart(
    debian15: DebianCluster, other: Path, switch: Callable[..., tuple[int, str, str]], home: Path
) -> None:
    before = described(pg_ctl_conf(debian15))
    code, said, errors = switch("switch", "--to", str(other), "--dry-run", restart=False)
    assert code == 0, errors
    assert said.splitlines()[:3] == [
        f"Would run 1 statement on {address(debian15)}; takes 1 restart",
        "",
        f"    in {pg_ctl_conf(debian15)}: pg_ctl_options = '-p {other}/bin/postgres'",
    ]
    assert described(pg_ctl_conf(debian15)) == before
    assert running(debian15) == PROGRAMS / "bin/postgres"
    assert not (home / "journal").exists()

    code, _, errors = switch("switch", "--to", str(other), restart=False)
    assert code == 4
    assert "1 of 1 changes need a restart, which was not allowed" in errors
    assert running(debian15) == PROGRAMS / "bin/postgres"


def test_root_acts_as_the_owner_where_nobody_else_is_let_in(
    debian15: DebianCluster, other: Path, home: Path
) -> None:
    """As Debian sets it up: over the socket everybody is who the kernel says he is."""
    debian15.execute("CREATE DATABASE another")
    hba = debian15.configuration_directory / "pg_hba.conf"
    hba.write_text("local all all peer\n")
    debian15.control("reload")
    with pytest.raises(psycopg.OperationalError, match="Peer authentication failed"):
        debian15.execute("SELECT")
    restart = f"pg_ctlcluster {VERSION} {debian15.name} restart"
    for command in (("switch", "--to", str(other)), ("status",), ("revert",)):
        how = () if command == ("status",) else ("--allow-restart", "--restart-command", restart)
        done = pgdyno(*command, "--pgdata", str(debian15.data_directory), *how, PGDYNO_HOME=str(home))
        assert done.returncode == 0, done.stderr
    assert running(debian15) == PROGRAMS / "bin/postgres"


def test_what_the_programs_lack_is_listed(
    debian15: DebianCluster, other: Path, switch: Callable[..., tuple[int, str, str]]
) -> None:
    debian15.execute("CREATE EXTENSION pgcrypto")
    debian15.execute(
        "CREATE FUNCTION raw(text) RETURNS text AS '$libdir/unaccent', 'unaccent_dict' LANGUAGE C"
    )
    (other / "lib/pgcrypto.so").unlink()
    (other / "lib/unaccent.so").unlink()
    for script in (other.parents[3] / SHARED.relative_to("/") / "extension").glob("pgcrypto*"):
        script.unlink()
    before = described(pg_ctl_conf(debian15))
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 4
    assert f"{other}/bin cannot run this server as it is" in errors
    assert "extension pgcrypto 1.3 is missing; library $libdir/pgcrypto cannot be loaded: " in errors
    assert 'library $libdir/unaccent cannot be loaded: could not access file "$libdir/unaccent"' in errors
    assert described(pg_ctl_conf(debian15)) == before
    assert running(debian15) == PROGRAMS / "bin/postgres"


def test_another_major_version_is_refused(
    debian15: DebianCluster, switch: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, errors = switch("switch", "--to", "embedded")
    assert code == 4
    assert "cannot run this server" in errors
    assert "another major version takes pg_upgrade" in errors


def test_programs_that_do_not_come_up_are_taken_back(
    debian15: DebianCluster, other: Path, switch: Callable[..., tuple[int, str, str]]
) -> None:
    """They run a scratch server, and then not this one: it finds a file that they alone refuse."""
    before = described(pg_ctl_conf(debian15))
    program = other / "bin/postgres"
    program.rename(other / "bin/real")
    program.write_text(
        "#!/bin/bash\n"
        f'case "$*" in *{debian15.data_directory}*) echo "not this one" >&2; exit 1;; esac\n'
        f'exec -a "{program}" "{other}/bin/real" "$@"\n'
    )
    program.chmod(0o755)
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 1, errors
    assert "the server did not come up with the new programs; the former ones are back and it runs" in errors
    assert "not this one" in errors
    assert described(pg_ctl_conf(debian15)) == before
    assert running(debian15) == PROGRAMS / "bin/postgres"


def test_a_restart_by_other_means_is_noticed(debian15: DebianCluster, other: Path, home: Path) -> None:
    """A restart command that does not read pg_ctl.conf starts the former programs once more."""
    before = described(pg_ctl_conf(debian15))
    command = (
        f"setpriv --reuid=postgres --regid=postgres --init-groups {PROGRAMS}/bin/pg_ctl restart -D "
        f"{debian15.data_directory} -w -l {debian15.directory}/log"
    )
    done = pgdyno(
        "switch", "--dsn", debian15.dsn, "--to", str(other), "--allow-restart", "--restart-command", command,
        PGDYNO_HOME=str(home),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "1 changes did not come into force" in done.stderr
    assert f"in force is {PROGRAMS}/bin" in done.stderr
    assert "pg_ctl restart starts what ran before: the restart command has to stop" in done.stderr
    assert described(pg_ctl_conf(debian15)) == before


@dataclass(frozen=True)
class Linked:
    """A server that is started through a link to its prefix, and the command that restarts it so."""

    server: RealServer
    link: Path
    restart: Path


@pytest.fixture
def linked() -> Iterator[Linked]:
    """Return a running server that is started through a link."""
    with running_server(PROGRAMS / "bin") as server, under_pg_ctl(server):
        link, restart = server.directory / "current", server.directory / "restart"
        link.symlink_to(PROGRAMS)
        os.lchown(link, 1, 1)
        pg_ctl = " ".join([*as_unprivileged(), f"{link}/bin/pg_ctl -D {server.data_directory}"])
        log = server.directory / "pg_ctl.log"
        restart.write_text(f"#!/bin/sh\n{pg_ctl} stop -m fast\nexec {pg_ctl} start -w -l {log}\n")
        restart.chmod(0o755)
        yield Linked(server, link, restart)


def test_a_server_that_is_started_through_a_link(linked: Linked, other: Path, home: Path) -> None:
    def run(command: str, *arguments: str) -> str:
        done = pgdyno(
            command, "--pgdata", str(linked.server.data_directory), *arguments, "--allow-restart",
            "--restart-command", str(linked.restart), "--json", PGDYNO_HOME=str(home),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    result = json.loads(run("switch", "--to", str(other), "--link", str(linked.link)))["result"]
    assert [(one["key"], one["before"], one["effective"]) for one in result["outcomes"]] == [
        (str(linked.link), f"{PROGRAMS}/bin", f"{other}/bin")
    ]
    assert (linked.link.readlink(), running(linked.server)) == (other, other / "bin/postgres")
    again = json.loads(run("switch", "--to", str(other), "--link", str(linked.link)))["result"]
    assert (again["apply_id"], again["outcomes"], again["restarts"]) == (None, [], 0)
    run("revert")
    assert is_as_before(linked)


def is_as_before(linked: Linked) -> bool:
    """Whether the link is its former self, and the server runs through it."""
    owner = (linked.link.lstat().st_uid, linked.link.lstat().st_gid)
    found = (linked.link.readlink(), running(linked.server), owner)
    return found == (PROGRAMS, PROGRAMS / "bin/postgres", (1, 1))


@pytest.mark.parametrize("action", ["apply", "revert"])
def test_a_switch_killed_at_any_step_is_undone_by_revert(
    linked: Linked, other: Path, tmp_path: Path, action: str
) -> None:
    """And a revert that is killed is finished by the next one: the former programs run, through the link."""
    access = access_to(linked.server, tmp_path)
    access = replace(access, restarter=command_restarter([str(linked.restart)], access.connect))

    def kill(journal: Path, step: int) -> str:
        if action == "revert":
            assert drive("apply", journal) == "done"
            assert running(linked.server) == other / "bin/postgres"
        return drive(action, journal, kill_after=step)

    def is_undone(journal: Path) -> bool:
        return is_reverted(replace(access, journal_directory=journal)) and is_as_before(linked)

    with driving(
        linked.server,
        restart_command=[str(linked.restart)],
        settings={"work_mem": "8MB"},
        programs=[(PROGRAM_LINK, str(linked.link), str(other))],
    ) as drive:
        steps = at_every_step(tmp_path, kill, is_undone)
    assert {"before restart", "restarted"} <= set(steps)


def test_a_cluster_whose_switch_is_killed_at_any_step_is_reverted(
    debian15: DebianCluster, other: Path, tmp_path: Path
) -> None:
    before = described(pg_ctl_conf(debian15))
    restart = ["pg_ctlcluster", VERSION, debian15.name, "restart"]

    def open_connection() -> Connection:
        return connect(debian15.dsn, is_read_only=False)

    access = ServerAccess(open_connection, tmp_path, restarter=command_restarter(restart, open_connection))

    def is_undone(journal: Path) -> bool:
        is_closed = is_reverted(replace(access, journal_directory=journal))
        found = (described(pg_ctl_conf(debian15)), running(debian15))
        return is_closed and found == (before, PROGRAMS / "bin/postgres")

    options = f"-p {other}/bin/postgres"
    with driving(
        debian15,
        restart_command=restart,
        settings={},
        programs=[(PG_CTL_OPTIONS, str(pg_ctl_conf(debian15)), options)],
    ) as drive:
        steps = at_every_step(
            tmp_path, lambda journal, step: drive("apply", journal, kill_after=step), is_undone
        )
    assert {"before restart", "restarted"} <= set(steps)


def is_reverted(access: ServerAccess) -> bool:
    """Revert, and return whether everything is undone and no receipt is open."""
    result = revert(access, RevertRequest(is_all=True, allow_restart=True))
    return result.is_complete and read_journal(access.journal_directory).open == ()


def test_former_programs_that_are_gone_are_not_restarted_onto(
    linked: Linked, other: Path, home: Path
) -> None:
    where = ("--pgdata", str(linked.server.data_directory), "--allow-restart", "--restart-command")

    def run(command: str, *arguments: str) -> tuple[int, str]:
        done = pgdyno(command, *where, str(linked.restart), *arguments, PGDYNO_HOME=str(home))
        return done.returncode, done.stderr

    assert run("switch", "--to", str(other), "--link", str(linked.link))[0] == 0
    assert run("switch", "--to", str(PROGRAMS), "--link", str(linked.link))[0] == 0
    (other / "bin/postgres").unlink()
    code, errors = run("revert")
    assert code == 1, errors
    assert f'"{other}/bin" holds no PostgreSQL' in errors
    assert (linked.link.readlink(), running(linked.server)) == (PROGRAMS, PROGRAMS / "bin/postgres")


def test_a_preloaded_library_that_is_missing_is_listed(
    debian15: DebianCluster, other: Path, switch: Callable[..., tuple[int, str, str]]
) -> None:
    debian15.execute("ALTER SYSTEM SET shared_preload_libraries = 'auto_explain'")
    debian15.execute("CREATE TABLE documents (body xml)")
    debian15.control("restart")
    (other / "lib/auto_explain.so").unlink()
    (other.parents[3] / SHARED.relative_to("/") / "tsearch_data/english.stop").unlink()
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 4
    assert "library auto_explain cannot be loaded: could not access file" in errors
    assert "text search dictionaries use a file english, which their tsearch_data does not have" in errors
    assert "xml" not in errors
    assert running(debian15) == PROGRAMS / "bin/postgres"


def test_a_cluster_that_does_not_run_from_what_was_chosen_is_left_alone(
    debian15: DebianCluster, other: Path, switch: Callable[..., tuple[int, str, str]]
) -> None:
    text = pg_ctl_conf(debian15).read_text().replace("''", f"'-p {other}/bin/postgres'")
    pg_ctl_conf(debian15).write_text(text)
    code, _, errors = switch("switch", "--to", str(other))
    assert code == 4
    assert f"the server does not run from what {pg_ctl_conf(debian15)} chooses" in errors
    assert f"it runs from {PROGRAMS}/bin, and the file chooses {other}/bin/postgres" in errors
    assert pg_ctl_conf(debian15).read_text() == text


def test_what_chooses_the_programs_has_to_be_known(linked: Linked, other: Path, home: Path) -> None:
    where = ("--pgdata", str(linked.server.data_directory), "--to", str(other))

    def refusal(*arguments: str) -> tuple[int, str]:
        done = pgdyno("switch", *where, *arguments, "--dry-run", PGDYNO_HOME=str(home))
        return done.returncode, done.stderr

    code, errors = refusal()
    assert code == 2
    assert "pgdyno does not know what chooses this server's programs" in errors
    assert f"there is no pg_ctl.conf beside {linked.server.data_directory}/postgresql.conf" in errors
    elsewhere = linked.server.directory / "elsewhere"
    elsewhere.symlink_to(other)
    code, errors = refusal("--link", str(elsewhere))
    assert code == 2
    assert f"the server is not started through {elsewhere}" in errors
    code, errors = refusal("--link", str(PROGRAMS))
    assert code == 4
    assert f"{PROGRAMS} is not a symbolic link" in errors
    other.parents[3].chmod(0o700)
    code, errors = refusal("--link", str(linked.link))
    assert code == 1, errors
    assert f'user "postgres" cannot run {other}/bin/postgres' in errors


def address(cluster: DebianCluster) -> str:
    """Return how receipts call the cluster."""
    return f"host={cluster.directory} port={cluster.port}"
