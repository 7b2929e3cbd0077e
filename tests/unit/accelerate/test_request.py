"""A plan has to bring more than it costs: decisions 29 and 33."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fix_plan import plan_of, setting

from pgdyno.accelerate.request import worthwhile_gain
from pgdyno.model.plans.plan import SERVER, Effect, Plan

_OTHER = setting("server", "embedded", "built-18", Effect.RESTART)
RELOAD = plan_of(setting("work_mem", "4MB", "16MB"))
RESTART = plan_of(setting("work_mem", "4MB", "16MB"), setting("shared_buffers", "4GB", "8GB", Effect.RESTART))

PROGRAMS = plan_of(replace(_OTHER, change=replace(_OTHER.change, kind=SERVER)))


@pytest.mark.parametrize(("plan", "gain"), [(RELOAD, 0.01), (RESTART, 0.02), (PROGRAMS, 0.05)])
def test_it_grows_with_what_the_plan_takes(plan: Plan, gain: float) -> None:
    assert worthwhile_gain(plan) == gain
