"""Comparisons that lose a load host."""

from __future__ import annotations

import json
import re
import shutil
import signal
from contextlib import closing
from pathlib import Path

import pytest
from tests.fix_cell import NamespaceCell
from tests.fix_compare_cell import (
    BOTH,
    LONG_TURNS,
    LOST,
    await_line,
    blocks_lost,
    compare,
    loading,
    rare,
)

from pgdyno.store.experiments import ExperimentStore

pytestmark = [pytest.mark.root, pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]


SHORT = ("--block", "3s", "--json")


def lost_in_the_first_round(name: str) -> list[dict[str, object]]:
    """Return the blocks that do not count, as the JSON document lists them."""
    where = {"workload": "pgbench-select", "round": 0, "reason": f'load host "{name}" was lost'}
    return [{**where, "block": 0}]


@rare
def test_a_load_host_whose_link_was_cut_goes_on_when_it_is_back(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading(cell, tmp_path, *SHORT) as process:
        cell["client1"].link("down")
        try:
            await_line(process, f"{LOST.format('client1')} (Timeout, server {cell['client1'].address} not")
            await_line(process, "waiting for client1: client1: ")
            await_line(process, " s left")
        finally:
            cell["client1"].link("up")
        said, errors = process.communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert blocks_lost(document) == lost_in_the_first_round("client1")
    (note,) = [note for note in document["notes"] if "was lost" in note]
    assert re.fullmatch('load host "client1" was lost in round 1: it was back after [0-9]+.s', note)
    assert document["load_hosts"] == [{"first_round": 0, "names": ["client1"]}]
    assert document["blocks"] >= 3
    assert document["is_complete"]


@rare
def test_a_load_host_on_which_all_was_killed_goes_on_and_keeps_nothing(
    cell: NamespaceCell, tmp_path: Path
) -> None:
    with loading(cell, tmp_path, *LONG_TURNS, "--json", loads=BOTH) as process:
        cell["client1"].end_sessions()
        await_line(process, LOST.format("client1"))
        said, errors = process.communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert blocks_lost(document) == lost_in_the_first_round("client1")
    assert document["load_hosts"] == [{"first_round": 0, "names": ["client1", "client2"]}]


@rare
def test_with_allow_fewer_the_other_load_host_goes_on(
    cell: NamespaceCell, tmp_path: Path, home: Path
) -> None:
    with loading(cell, tmp_path, *LONG_TURNS, "--allow-fewer", "--json", loads=BOTH) as process:
        cell["client2"].link("down")
        try:
            await_line(process, LOST.format("client2"))
        finally:
            cell["client2"].link("up")
        said, errors = process.communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert blocks_lost(document) == lost_in_the_first_round("client2")
    names = [["client1", "client2"], ["client1"]]
    assert document["load_hosts"] == [{"first_round": n, "names": one} for n, one in enumerate(names)]
    changed = (
        'from round 2 on, the load came from host "client1", before from host "client1" and host "client2"'
    )
    assert [note for note in document["notes"] if note.startswith(changed)]
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        experiment = store.load(document["experiment"])
        (first, *_) = store.slices(experiment.id, "pgbench-select", 1, 0)
    assert first.apart_ns is None  # nobody else had that turn
    counted = [block for block in experiment.blocks if block.round > 0]
    assert all(arm.transactions > 100 for block in counted for arm in block.arms)


@rare
def test_what_was_interrupted_while_a_host_was_lost_is_continued(cell: NamespaceCell, tmp_path: Path) -> None:
    with loading(cell, tmp_path, *SHORT) as process:
        cell["client1"].end_sessions()
        cell["client1"].link("down")
        try:
            await_line(process, "waiting for client1")
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=90)
        finally:
            cell["client1"].link("up")
    assert process.returncode == 130
    assert "interrupted; the block measured so far is kept" in errors
    (found,) = set(re.findall(r"continue with --resume (\S+)", errors))
    for left in Path(f"/proc/{cell['client1'].pids()[0]}/root/run/tmp").glob("pgdyno-load-*"):
        shutil.rmtree(left)  # another pgdyno does not know it
    said, errors = compare(cell, tmp_path, *SHORT, "--resume", found).communicate(timeout=180)
    assert said, errors
    document = json.loads(said)
    assert document["experiment"] == found
    assert blocks_lost(document) == lost_in_the_first_round("client1")
    assert document["is_complete"]
