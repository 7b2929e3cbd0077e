"""What ``pgdyno awake`` costs a server that is busy: its spinners turned on and off under a full load.

pgbench's select-only load, with more clients than CPUs, runs throughout; the spinners take turns of some
seconds with nothing, in the order A B B A. pgbench counts transactions by the second, and a ratio is that of
one such group. As root, where ``pgdyno awake`` is possible.

    python -m bench.spinners --groups 30
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np

from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.probing.spinners import find_top, spinning, why_no_spinners
from pgdyno.postgres.process.instance import SUPERUSER, Instance, initialise
from pgdyno.postgres.process.local_machine import online_cpus, workspace
from pgdyno.postgres.process.registry import embedded
from pgdyno.stats.inference import infer
from pgdyno.stats.sample import Sample

PORT, SCALE, TURN_S, WARM_UP_S = 5432, 10, 4, 5
CLIENTS_PER_CPU = 4
ORDER = (False, True, True, False)
LEVEL, MARGIN = 0.95, 0.01


def play(instance: Instance, spin: Callable[[], AbstractContextManager[object]], groups: int) -> list[float]:
    """Return the logarithm of the rate with spinners over that without, of every group."""
    log, cpus = instance.data_directory.parent / "pgbench", len(online_cpus())
    length_s = WARM_UP_S + groups * len(ORDER) * TURN_S + 2
    command = [instance.installation.program("pgbench"), "--host", instance.host, "--port", str(PORT)]
    command += ["--username", SUPERUSER, "--select-only", "--protocol", "prepared", "--time", str(length_s)]
    command += ["--client", str(CLIENTS_PER_CPU * cpus), "--log", "--aggregate-interval", "1"]
    turns: list[tuple[int, bool]] = []
    with subprocess.Popen([*command, "--log-prefix", str(log), "postgres"]) as load:
        begins = math.ceil(time.time()) + WARM_UP_S
        for index in range(groups * len(ORDER)):
            is_spinning = ORDER[index % len(ORDER)]
            start = begins + index * TURN_S
            time.sleep(max(0.0, start - time.time()))
            with spin() if is_spinning else nullcontext():
                turns.append((start, is_spinning))
                time.sleep(max(0.0, start + TURN_S - 0.1 - time.time()))
        load.wait()
    rates = rates_by_second(log)
    return [_log_ratio(rates, turns[at : at + len(ORDER)]) for at in range(0, len(turns), len(ORDER))]


def rates_by_second(prefix: Path) -> dict[int, int]:
    """Return the transactions of every second; they are the first two columns of pgbench's log."""
    (log,) = prefix.parent.glob(f"{prefix.name}.*")
    rows = (line.split() for line in log.read_text().splitlines())
    return {int(row[0]): int(row[1]) for row in rows}


def _log_ratio(rates: dict[int, int], turns: list[tuple[int, bool]]) -> float:
    """Return one group's ratio; the first second of a turn, in which spinners begin or end, is left out."""
    done = {
        wanted: sum(
            rates[start + second] for start, is_spinning in turns if is_spinning is wanted
            for second in range(1, TURN_S)
        )
        for wanted in (False, True)
    }  # fmt: skip
    return math.log(done[True] / done[False])


def main() -> None:
    """Print the ratio with its interval as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--groups", type=int, default=30, help=f"of {len(ORDER) * TURN_S} s each")
    asked = parser.parse_args()
    tree = Tree()
    top, reason = find_top(tree), why_no_spinners(tree, online_cpus())
    if reason is not None or isinstance(top, Unknown):
        raise SystemExit(f"no spinners here: {reason}")
    place, installation = workspace(), embedded()
    with place.measuring(), place.scratch() as scratch, place.sockets(scratch) as sockets:
        initialise(installation, place.account, scratch / "data")
        instance = Instance(installation, place.account, scratch / "data", sockets, PORT, {})
        with instance.running():
            load = [installation.program("pgbench"), "--host", instance.host, "--port", str(PORT)]
            load += ["--username", SUPERUSER, "--initialize", "--quiet", "--scale", str(SCALE), "postgres"]
            subprocess.run(load, check=True)
            ratios = play(instance, partial(spinning, online_cpus(), top), asked.groups)
    found = infer(Sample.of([[one] for one in ratios]), level=LEVEL, margin=MARGIN, is_anytime=False)
    print(
        json.dumps(
            {
                "ratio": math.exp(float(np.mean(ratios))),
                "interval": [math.exp(found.low), math.exp(found.high)],
                "groups": asked.groups,
                "cpus": len(online_cpus()),
                "clients": CLIENTS_PER_CPU * len(online_cpus()),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
