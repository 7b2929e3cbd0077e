"""Programs of a host that other users may exchange."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.programs.remote.test_runner_program import answers

from pgdyno.remote import _runner_program


def planted(place: Path, program: str, says: str) -> Path:
    """Put a program there that says something, and in a file beside it who has run it."""
    ran = place / "ran"
    ran.touch()
    ran.chmod(0o666)
    path = place / program
    path.write_text(
        f"#!/bin/sh\nid -u > {ran}\nenv >> {ran}\n"
        f"echo SESSION=$(cut -d' ' -f6 /proc/self/stat) >> {ran}\n"
        f"grep NoNewPrivs /proc/self/status >> {ran}\necho '{says}'\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-programs-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.root
@pytest.mark.parametrize("owned", ["postgres", "."])
def test_as_root_a_program_of_another_user_runs_as_that_user(reachable: Path, owned: str) -> None:
    """The property of postgres in an installation from source, for example."""
    planted(reachable, "postgres", "postgres (PostgreSQL) 17.2")
    os.chown(reachable / owned, 65534, 65534)
    question = {"do": "facts", "is_server": True, "postgresql": str(reachable), "pgdyno": "/nowhere"}
    (found,) = answers(question, PGPASSWORD="of-root-alone")
    said = {"directory": str(reachable), "version": "postgres (PostgreSQL) 17.2", "trouble": ""}
    assert found["postgresql"] == [said]
    ran_as, *environment = (reachable / "ran").read_text().splitlines()
    assert ran_as == "65534"
    assert environment[-1] == "NoNewPrivs:\t1"
    assert not any("of-root-alone" in line or line.startswith("HOME=") for line in environment)
    assert f"SESSION={os.getsid(0)}" not in environment
    assert environment[-2].startswith("SESSION=")


@pytest.mark.root
def test_as_root_a_program_that_several_can_exchange_is_not_run(reachable: Path) -> None:
    (reachable / "bin").mkdir()
    program = planted(reachable / "bin", "pgdyno", "pgdyno, version 1.2")
    os.chown(program, 65534, 65534)
    os.chown(program.parent, 65533, 65533)
    said = {"program": str(program), "version": ""}
    reason = "cannot be run: you are root, and users [65533, 65534] can replace it"
    assert _runner_program.pgdyno(str(program)) == {**said, "trouble": reason}
    for place in (program, program.parent):
        os.chown(place, 0, 0)
    program.parent.chmod(0o777)
    reason = f"cannot be run: you are root, and {program.parent} is writable by a group or by all users"
    assert _runner_program.pgdyno(str(program)) == {**said, "trouble": reason}
    program.parent.chmod(0o1777)
    assert _runner_program.pgdyno(str(program)) == {**said, "version": "1.2", "trouble": ""}
    assert (reachable / "bin/ran").read_text().startswith("0\n")


@pytest.mark.root
def test_as_root_links_lead_to_the_program_that_is_looked_at(reachable: Path) -> None:
    program = planted(reachable, "program", "pgdyno, version 1.2")
    os.chown(program, 65534, 65534)
    link = reachable / "pgdyno"
    link.symlink_to(program)
    assert _runner_program.pgdyno(str(link)) == {"program": str(link), "version": "1.2", "trouble": ""}
    assert (reachable / "ran").read_text().startswith("65534\n")
