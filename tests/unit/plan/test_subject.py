"""The subject of a plan, and what the measurement decides itself."""

from __future__ import annotations

from tests.unit.plan.test_layers_of_a_plan import line

from pgdyno.model.plans.plan import KERNEL, SETTING, Layer, Plan
from pgdyno.plan.subject import without_idling


def test_how_cpus_idle_is_left_to_the_measurement_and_the_rest_of_a_plan_is_not() -> None:
    length = line(Layer.SYSTEM, KERNEL, "/sys/module/haltpoll/parameters/guest_halt_poll_ns", "200000")
    memory = line(Layer.APPLICATION, SETTING, "work_mem", "8MB")
    left = without_idling(Plan((memory, length), (), (), None))
    assert (left.lines, left.layers) == ((memory,), (Layer.APPLICATION,))
