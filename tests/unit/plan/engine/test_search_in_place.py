"""What of a search space a running server can be given."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fix_settings import host_of, server_of

from pgdyno.model.plans.plan import PER_APPLICATION, Effect, Layer
from pgdyno.model.tuning.space import Space
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.engine.search_in_place import lines_in_place, space_in_place
from pgdyno.plan.engine.search_space import space_of
from pgdyno.plan.levers import load

SERVER = server_of(changes={"wal_buffers": "2MB"})
PLAN = make_plan(host_of(), SERVER, PlanRequest())
WHOLE = space_of(PLAN, SERVER, (Layer.APPLICATION,), load(), {})


def keys_of(space: Space) -> set[str]:
    """Return every setting that a point of the space may have."""
    brought = {key for one in space.dimensions for key in one.brings}
    return {*(one.key for one in space.dimensions), *brought, *space.kept}


def test_a_reload_brings_all_of_it_into_force() -> None:
    found = space_in_place(WHOLE, SERVER, may_restart=False)
    contexts = {SERVER.settings[key].context for key in keys_of(found.space)}
    assert contexts <= {"sighup", "superuser", "user"}
    assert "random_page_cost" in keys_of(found.space)
    assert "shared_buffers" in found.left_out


def test_what_suits_one_application_is_never_set_for_a_server() -> None:
    found = space_in_place(WHOLE, SERVER, may_restart=True)
    assert not PER_APPLICATION & keys_of(found.space)
    assert set(found.per_application) == {"plan_cache_mode"}


def test_planned_values_that_take_a_restart_are_one_dimension() -> None:
    found = space_in_place(WHOLE, SERVER, may_restart=True).space
    restarting = [one for one in found.dimensions if SERVER.settings[one.key].needs_restart]
    planned = {line.change.key for line in PLAN.lines if line.change.effect is Effect.RESTART}
    assert len(planned) > 1
    assert len(restarting) == 1
    together = {restarting[0].key, *restarting[0].brings}
    assert {key for key in together if SERVER.settings[key].needs_restart} == planned & keys_of(WHOLE)
    assert restarting[0].values == (restarting[0].planned,)


def test_every_setting_of_it_has_a_line_with_its_effect() -> None:
    found = space_in_place(WHOLE, SERVER, may_restart=True).space
    lines = {line.change.key: line for line in lines_in_place(found, PLAN, SERVER, load())}
    assert lines.keys() == keys_of(found)
    assert all(
        (line.change.effect is Effect.RESTART) == SERVER.settings[key].needs_restart
        for key, line in lines.items()
    )
    assert all(line.change.lever in load() for line in lines.values())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("command line", "on the server's command line"),
        ("environment variable", "by an environment variable of the server"),
        ("user", "for this role (ALTER ROLE)"),
        ("global", "for all roles (ALTER ROLE ALL)"),
        ("client", "by this connection's options"),
    ],
)
def test_what_others_have_set_where_alter_system_does_not_reach_is_left_out(source: str, said: str) -> None:
    theirs = {key: replace(SERVER.settings[key], source=source) for key in ("work_mem", "shared_buffers")}
    server = replace(SERVER, settings={**SERVER.settings, **theirs})
    assert {"work_mem", "shared_buffers"} <= keys_of(WHOLE)
    found = space_in_place(WHOLE, server, may_restart=True)
    assert found.of_others == {"work_mem": said, "shared_buffers": said}
    assert not theirs.keys() & (keys_of(found.space) | set(found.left_out))
    assert "random_page_cost" in keys_of(found.space)
    assert not space_in_place(WHOLE, SERVER, may_restart=True).of_others
