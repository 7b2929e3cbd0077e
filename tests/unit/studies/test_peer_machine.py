"""The machine that peers' configurations are made for, and the load that they have to have room for."""

from __future__ import annotations

import pytest
from tests.fix_settings import GB, MB, server_of

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import Sizing
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.peers._contract import PeerFacts, Purpose
from pgdyno.postgres.process.local_machine import available_memory_bytes
from pgdyno.studies.bundled.insert_benchmark import study as insert_benchmark
from pgdyno.studies.bundled.tpch import study as tpch
from pgdyno.studies.peer_machine import (
    LoadOnPeers,
    load_of,
    machine_memory,
    machine_notes,
    notes_on_data,
    with_room_for_wal,
)
from pgdyno.studies.run import find_study
from pgdyno.workload.workload_choice import find_workloads

FACTS = PeerFacts(4 * GB, 2, 18, "ssd", connections=16)


def test_usual_workloads_have_the_designs_clients_and_their_data_set() -> None:
    found = load_of(Conditions(None, find_workloads(("pgbench-tpcb",), (), 100), Design(clients=8)))
    assert (found.in_passes, found.clients, found.made_bytes) == (False, 8, None)
    assert found.purpose is Purpose.TRANSACTIONS
    assert 1.4e9 < found.data_bytes < 1.7e9  # pgbench at scale 100


def test_steps_of_the_insert_benchmark_have_three_sessions_a_client_and_make_their_data() -> None:
    sizing = Sizing({"rows": ("1000000/100000/10000",), "step-seconds": ("10",)}, clients=4)
    found = load_of(Conditions(None, insert_benchmark.workloads(sizing), Design()))
    assert (found.in_passes, found.purpose, found.clients) == (True, Purpose.TRANSACTIONS, 12)
    # 4 million rows of 205 bytes, and 4 × (110,000 + 2 × 1,600 × 10) replaced ones of 160
    assert found.made_bytes == found.data_bytes == 820_000_000 + 568_000 * 160


def test_a_pass_like_tpch_has_a_stream_of_refresh_functions_besides() -> None:
    found = load_of(Conditions(None, tpch.workloads(Sizing(scale=0.1, clients=3)), Design()))
    assert (found.in_passes, found.clients, found.made_bytes) == (True, 4, None)
    assert found.purpose is Purpose.WAREHOUSE
    assert found.data_bytes > 100 * MB


def load(*, in_passes: bool) -> LoadOnPeers:
    return LoadOnPeers(in_passes, Purpose.TRANSACTIONS, 4, 1 * GB, None)


def test_a_server_that_runs_alone_is_made_for_all_of_the_memory() -> None:
    beside, _ = machine_memory(Sizing({"memory": ("1GB",)}), load(in_passes=False))
    assert beside == GB
    alone, available = machine_memory(Sizing(), load(in_passes=True))
    assert alone == available // (64 * MB) * 64 * MB
    assert available == pytest.approx(available_memory_bytes(), rel=0.5)  # it changes meanwhile
    with pytest.raises(UsageError, match=r"--memory 900.TB is more than the"):
        machine_memory(Sizing({"memory": ("900TB",)}), load(in_passes=True))


def test_the_notes_say_whose_memory_it_is() -> None:
    (side_by_side,) = machine_notes(FACTS, load(in_passes=False), 20 * GB)
    assert "each server's share of the 20\N{NO-BREAK SPACE}GB" in side_by_side
    (alone,) = machine_notes(FACTS, load(in_passes=True), 20 * GB)
    assert "all of the 20\N{NO-BREAK SPACE}GB available here" in alone
    (stated,) = machine_notes(FACTS, load(in_passes=True), None)
    assert "available here" not in stated


def test_data_that_do_not_fit_are_said_by_server() -> None:
    variants = [Variant("small", {"shared_buffers": "128MB"}), Variant("large", {"shared_buffers": "2GB"})]
    (note,) = notes_on_data(variants, server_of(), 1 * GB)
    assert "do not fit into shared_buffers of small;" in note
    assert not list(notes_on_data(variants[1:], server_of(), 1 * GB))


@pytest.mark.parametrize(
    ("sizes", "more_bytes"),
    [
        (("4GB", "16GB", "2048"), 45 * GB // 2),  # 1.5 × (16 GiB − 1 GiB, which is PostgreSQL's own)
        (("11264",), 15 * GB),  # without a unit it is MB
        (("512MB",), 0),  # the default beside it has 1 GiB
        ((), 0),
    ],
)
def test_the_room_on_disk_is_asked_for_the_largest_wal_of_the_peers(
    sizes: tuple[str, ...], more_bytes: int
) -> None:
    peers = find_study("peers", {"benchmark": ("insert-benchmark",)})
    before = insert_benchmark.workloads(Sizing())
    configurations = [{"jit": "off"}, *({"max_wal_size": size} for size in sizes)]
    after = with_room_for_wal(before, peers, Sizing(), configurations)
    assert [*after] == [*before]
    assert {(after[name].disk_bytes or 0) - (one.disk_bytes or 0) for name, one in before.items()} == {
        more_bytes
    }


@pytest.mark.parametrize("benchmark", [(), ("tpch",)])
def test_workloads_that_need_no_more_than_their_data_set_are_left_as_they_are(
    benchmark: tuple[str, ...],
) -> None:
    peers = find_study("peers", {"benchmark": benchmark} if benchmark else {})
    before = tpch.workloads(Sizing(scale=0.1)) if benchmark else find_workloads(("pgbench-tpcb",))
    assert with_room_for_wal(before, peers, Sizing(scale=0.1), [{"max_wal_size": "16GB"}]) == before
