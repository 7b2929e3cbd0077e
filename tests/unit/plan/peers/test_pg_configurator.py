"""pg-configurator's configuration, against what the package itself printed.

The fixture is the output of pg-configurator 0.11.1 for six hosts of duty oltp and six of duty statistic,
recorded on 2026-11-25 and 26 with the arguments that stand in it. What it prints to watch the server is no
part of the rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fix_settings import GB, MB

from pgdyno.base.facts import Unknown
from pgdyno.plan.peers import load
from pgdyno.plan.peers._contract import PeerFacts, Purpose, Storage

RECORDED = json.loads(
    (Path(__file__).parents[3] / "fixtures" / "peers" / "pg-configurator-0.11.1.json").read_text()
)
DISKS: Mapping[str, Storage] = {"SATA": "hdd", "NETWORK": "san", "SSD": "ssd", "NVME": "nvme"}
PURPOSES = {"oltp": Purpose.TRANSACTIONS, "statistic": Purpose.WAREHOUSE}
WATCHING = ("log", "track_", "auto_explain.", "pg_stat_statements.", "compute_query_id")
PLACE = "stats_temp_directory"  # of 14: a directory


def facts_of(arguments: str) -> PeerFacts:
    words = arguments.split()
    given = dict(zip(words[::2], words[1::2], strict=True))
    return PeerFacts(
        memory_bytes=int(given["--db-ram"].removesuffix("Gi")) * GB,
        cpus=int(given["--db-cpu"]),
        major=int(given["--pg-version"]),
        storage=DISKS[given["--db-disk-type"]],
        purpose=PURPOSES[given["--db-duty"]],
    )


@pytest.mark.parametrize("host", RECORDED["hosts"], ids=lambda host: str(host["arguments"]))
def test_every_host_gets_exactly_what_the_package_prints(host: dict[str, Any]) -> None:
    printed = {
        name: value
        for name, value in host["settings"].items()
        if name != PLACE and (not name.startswith(WATCHING) or name == "logical_decoding_work_mem")
    }
    settings = load()["pg-configurator"].settings(facts_of(host["arguments"]))
    assert settings == printed


def test_it_refuses_little_memory_as_the_package_does() -> None:
    settings = load()["pg-configurator"].settings(PeerFacts(900 * MB, 2, 18, "ssd"))
    assert settings == Unknown("it requires memory for at least 20 connections")
