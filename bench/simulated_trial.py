"""A trial that nobody measures: a recorded result with noise, now and then a failure or a lost worker.

It runs on the workers of ``bench.simulated_fleet``. The same trial again has the same result.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from distributed import Worker, get_worker

from pgdyno.app.results.bundle import verify_bundle
from pgdyno.app.results.bundle_import import verified_experiment
from pgdyno.model.errors import MeasurementError
from pgdyno.model.experiments.experiment import ArmBlock, Experiment
from pgdyno.model.fleets.fleet_order import TrialOrder
from pgdyno.store.bundle import pack_bundle
from pgdyno.store.documents import dump_experiment

RECORDED = Path(__file__).parents[1] / "docs/results/debug-io-direct.zip"
FAILURES, LOST = 0.02, 0.01  # shares of attempts
_MEAN, _BETWEEN, _NOISE = 0.05, 0.03, 0.01  # of log-ratios: of all machines, between them, of a block
_GONE_S = 2.0


def simulated_trial(order: TrialOrder) -> bytes:
    """Return the answer to an order. Raises: MeasurementError in two of a hundred cases."""
    fate = random.random()  # noqa: S311 — not a secret; another one with every attempt
    if fate < LOST:
        worker = get_worker()
        worker.loop.add_callback(_vanish, worker)
        time.sleep(1.0)  # nobody is there to take the answer
    elif fate < LOST + FAILURES:
        raise MeasurementError("the trial ended with exit code 1", detail="simulated")
    return pack_bundle(
        order.key, {"experiment.json": json.dumps(dump_experiment(_noisy(order.key))).encode()}
    )


async def _vanish(worker: Worker) -> None:
    """Take a worker away, and start another one of its name later."""
    scheduler, name, resources = worker.scheduler.address, worker.name, worker.state.total_resources
    await worker.close(executor_wait=False, reason="simulated")
    await asyncio.sleep(_GONE_S)
    await Worker(scheduler, name=name, nthreads=1, resources=dict(resources))


@cache
def _recorded() -> Experiment:
    return verified_experiment(verify_bundle(RECORDED))


def _noisy(key: str) -> Experiment:
    machine = key.rpartition("-")[0]
    effect = _random(machine).normal(_MEAN, _BETWEEN)
    noise = _random(key)
    recorded = _recorded()

    def changed(arm: ArmBlock) -> ArmBlock:
        own = 0.0 if arm.variant == recorded.baseline else effect
        return replace(
            arm,
            values={
                name: value * float(np.exp(own + noise.normal(0, _NOISE)))
                for name, value in arm.values.items()
            },
        )

    blocks = tuple(replace(one, arms=tuple(map(changed, one.arms))) for one in recorded.blocks)
    return replace(recorded, id=key, blocks=blocks)


def _random(seed: str) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big"))
