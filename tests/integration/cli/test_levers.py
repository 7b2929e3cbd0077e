"""``pgdyno levers`` on a real server: every lever has a state, and a reason where it is left alone."""

from __future__ import annotations

import json

import pytest
from tests.fix_home import pgdyno

from pgdyno.plan import levers
from pgdyno.plan.levers._contract import State

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]


def test_every_lever_has_a_state_and_a_plan_or_a_reason() -> None:
    done = pgdyno("levers", "--embedded", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["server"]["version"].startswith("18")
    found = {one["name"]: one for one in document["levers"]}
    assert set(found) == set(levers.load())
    for name, one in found.items():
        assert one["finding"]["state"] in set(State), name
        assert bool(one["finding"]["lines"]) != bool(one["finding"]["left_alone"]), name


def test_one_layer_is_shown_alone() -> None:
    done = pgdyno("levers", "--embedded", "--layer", "compiler")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 lever: 1 preview\nhere: ")
    assert "\ncompiler\n  optimised_build  " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("jti",), 'no lever "jti"'),
        (("jit", "--layer", "system"), 'lever "jit" is not in layer system'),
        (("--layer", "kernel"), "'kernel' is not one of"),
    ],
)
def test_what_there_is_not_is_a_usage_error(arguments: tuple[str, ...], said: str) -> None:
    done = pgdyno("levers", "--embedded", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
