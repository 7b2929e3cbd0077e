"""``pgdyno run version``: Debian's PostgreSQL 15 against the wheel's 18, at a size that takes seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fix_home import pgdyno

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]

TINY = ("--workload", "pgbench-select", "--scale", "1", "--block", "500ms", "--blocks", "1")


def notes_of(pg15_bin: Path, *arguments: str) -> list[str]:
    """Compare the two servers and return the notes."""
    servers = f"server={pg15_bin.parent},embedded"
    done = pgdyno("run", "version", "--factor", servers, *TINY, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["baseline"] == f"{pg15_bin.parent.name}"
    assert {one["variant"] for one in document["comparisons"]} == {"embedded"}
    notes: list[str] = document["notes"]
    return notes


def test_two_majors_that_were_built_differently_are_called_confounded(pg15_bin: Path) -> None:
    (marked,) = (note for note in notes_of(pg15_bin) if note.startswith("CONFOUNDED: "))
    assert "differ in more than their version" in marked
    assert ", embedded with gcc (GCC) " in marked  # the compiler with its version
    assert "is a distribution's package" in marked


def test_differences_that_are_accepted_are_listed_all_the_same(pg15_bin: Path) -> None:
    notes = notes_of(pg15_bin, "--accept")
    assert not any("CONFOUNDED" in note for note in notes)
    (accepted,) = (note for note in notes if note.startswith("accepted: "))
    assert ", embedded with gcc (GCC) " in accepted
    assert "is a distribution's package" in accepted


@pytest.mark.parametrize("arguments", [(), ("--factor", "server=embedded")])
def test_fewer_than_two_servers_are_refused(arguments: tuple[str, ...]) -> None:
    done = pgdyno("run", "version", *arguments)
    assert done.returncode == 2
    assert "a comparison of versions takes two servers" in done.stderr
    assert "pgdyno server list" in done.stderr


def test_accepting_differences_takes_several_servers() -> None:
    done = pgdyno("run", "insert-benchmark", "--embedded", "--accept")
    assert done.returncode == 2
    assert "--accept requires several servers" in done.stderr
