"""A server that is started through a symbolic link is switched, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.integration.switch.programs import PROGRAMS, Linked, is_as_before, running

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.root]


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
    assert f'"{other}/bin" contains no PostgreSQL' in errors
    assert (linked.link.readlink(), running(linked.server)) == (PROGRAMS, PROGRAMS / "bin/postgres")


def test_what_chooses_the_programs_has_to_be_known(linked: Linked, other: Path, home: Path) -> None:
    where = ("--pgdata", str(linked.server.data_directory), "--to", str(other))

    def refusal(*arguments: str) -> tuple[int, str]:
        done = pgdyno("switch", *where, *arguments, "--dry-run", PGDYNO_HOME=str(home))
        return done.returncode, done.stderr

    code, errors = refusal()
    assert code == 2
    assert "pgdyno does not know how this server's programs are selected" in errors
    assert f"there is no pg_ctl.conf next to {linked.server.data_directory}/postgresql.conf" in errors
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
    assert f'user "postgres" cannot enter the directory "{other.parents[3]}"' in errors
