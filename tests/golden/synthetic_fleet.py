"""Made-up machines that compare the same two servers. Their figures come from nobody's machine.

Each is the synthetic experiment on other hardware, with noise of its own and a known true effect.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.golden.synthetic import HOST, READ_ONLY, READ_WRITE, experiment

from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.results.fleets.fleet_members import Member

ON_READ_ONLY = (1.19, 1.24, 1.16, 1.21, 1.18)
ON_READ_WRITE = (1.04, 0.93, 1.01, 1.06, 1.02)
_NOISE = 0.006


def on_machine(number: int, read_only: float, read_write: float, **changes: Any) -> Experiment:
    """Return the comparison on a machine with these true effects on throughput; on CPU they are inverse."""
    noise = random.Random(number)  # noqa: S311 — a fixture
    effects = {READ_ONLY: read_only, READ_WRITE: read_write}

    def arm(one: ArmBlock, of: Block) -> ArmBlock:
        ratio = 1.0 if one.variant == "default" else effects[of.workload]
        values = {
            "throughput_tps": 1000 * ratio * math.exp(noise.gauss(0, _NOISE)),
            "server_cpu_us_per_transaction": 500 / ratio * math.exp(noise.gauss(0, _NOISE)),
        }
        return replace(one, values=values)

    base = experiment()
    blocks = tuple(replace(block, arms=tuple(arm(one, block) for one in block.arms)) for block in base.blocks)
    host = with_processor(f"Example CPU {9000 + number}")
    return replace(
        base,
        **{
            "id": f"on-{number}",
            "created": f"2026-11-2{number}T09:30:12Z",
            "blocks": blocks,
            "host": host,
            "generators": dict.fromkeys(base.workloads, "driver"),
        }
        | changes,
    )


def with_processor(model: str) -> dict[str, Any]:
    """Return the synthetic host with another processor."""
    cpu = HOST["cpu"]
    assert isinstance(cpu, dict)
    return {**HOST, "cpu": {**cpu, "model": {"value": model, "source": "/proc/cpuinfo"}}}


def given(experiments: Sequence[Experiment], names: Sequence[str] | None = None) -> list[Member]:
    """Return experiments as a user gives them: as bundles, perhaps with machines' names."""
    return [
        Member(f"{one.id}.zip", names[position] if names else "", one)
        for position, one in enumerate(experiments)
    ]


def fleet(machines: int = 5) -> list[Experiment]:
    """Return the comparison on so many machines: better on all when reading, on some when writing."""
    effects = zip(ON_READ_ONLY, ON_READ_WRITE, strict=True)
    return [on_machine(number, *both) for number, both in enumerate(effects, 1)][:machines]
