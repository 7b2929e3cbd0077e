"""The memory proof: its sum by hand, its estimate against PostgreSQL's own figure, and its refusal."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from tests.fix_servers import RealServer
from tests.fix_settings import GB, MB, host_of, server_of

from pgdyno.base.errors import MemoryProofError
from pgdyno.base.facts import Fact, unknown
from pgdyno.host.host import HugePagePool
from pgdyno.model.plans.plan import MemoryProof
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.memory_proof import check_memory_proof, memory_proof, shared_memory_bytes
from pgdyno.plan.engine.resources import Figures, Resources, resources_of
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.server import Server, SettingOverride


def resources(server: Server, memory_bytes: int = 24 * GB, huge_pages: int = 0) -> Resources:
    pools = {2 * MB: HugePagePool(total=huge_pages, free=huge_pages, reserved=0, surplus=0)}
    return resources_of(host_of(memory_bytes=memory_bytes, huge_pages=pools), server, Figures())


def proof_of(server: Server, planned: dict[str, str], found: Resources | None = None) -> MemoryProof:
    proof = memory_proof(EffectiveSettings(server, planned), found or resources(server))
    assert proof is not None
    return proof


def sizes(proof: MemoryProof) -> dict[str, int]:
    return {item.name: item.size_bytes for item in proof.items}


def test_the_sum_of_the_defaults_is_what_it_is_by_hand() -> None:
    # PostgreSQL 18's defaults: 100 connections, work_mem 4 MB, hash_mem_multiplier 2, 8 parallel workers,
    # maintenance_work_mem 64 MB, 3 autovacuum workers, shared_memory_size 150 MB with 128 MB of buffers.
    # 128 MB in 4 kB pages are 32768 pages of 8 bytes = 256 kB for each of 100 + 3 + 8 processes.
    proof = proof_of(server_of(18), {})
    assert sizes(proof) == {
        "shared_buffers": 128 * MB,
        "other shared memory": 22 * MB,
        "connections": 600 * MB,
        "connections' work_mem": 1200 * MB,
        "parallel workers": 8 * 18 * MB,
        "building an index": 64 * MB,
        "autovacuum workers": 192 * MB,
        "page tables": 111 * 256 * 1024,
    }
    assert proof.total_bytes == 2350 * MB + 111 * 256 * 1024
    assert proof.limit_bytes == 24 * GB


def test_formulas_show_the_figures() -> None:
    formulas = {item.name: item.formula for item in proof_of(server_of(18), {"work_mem": "20MB"}).items}
    assert formulas["connections' work_mem"] == "100 × 20MB × (1 for a sort + 2 for a hash table)"
    assert formulas["page tables"] == "111 processes × 8 bytes per 4kB of 128MB"
    assert formulas["autovacuum workers"] == "3 × 64MB (maintenance_work_mem)"


def test_before_15_a_hash_table_has_no_more_than_a_sort() -> None:
    # hash_mem_multiplier was 1 by default until 14.
    assert sizes(proof_of(server_of(14), {}))["connections' work_mem"] == 100 * 2 * 4 * MB


def test_page_tables_cost_2_mb_per_gb_and_process_unless_huge_pages_suffice() -> None:
    server = server_of(18)
    planned = {"shared_buffers": "8GB"}
    assert sizes(proof_of(server, planned))["page tables"] == 111 * 16 * MB
    # 8 GB and some more are 4096 pages of 2 MB and some more: 8 bytes each.
    enough = resources(server, huge_pages=5000)
    assert sizes(proof_of(server, planned, enough))["page tables"] == 111 * 8 * 4096
    too_few = resources(server, huge_pages=4096)
    assert sizes(proof_of(server, planned, too_few))["page tables"] == 111 * 16 * MB
    switched_off = {**planned, "huge_pages": "off"}
    assert sizes(proof_of(server, switched_off, enough))["page tables"] == 111 * 16 * MB


def test_autovacuum_has_its_own_memory_where_it_was_given_some() -> None:
    planned = {"maintenance_work_mem": "2GB", "autovacuum_work_mem": "128MB"}
    found = sizes(proof_of(server_of(18), planned))
    assert found["building an index"] == 2 * GB
    assert found["autovacuum workers"] == 3 * 128 * MB


def with_overrides(server: Server, *overrides: SettingOverride) -> Server:
    return replace(server, overrides=Fact(overrides, "pg_db_role_setting"))


def test_what_a_role_sets_for_itself_counts_for_every_connection() -> None:
    server = with_overrides(server_of(18), SettingOverride("app", None, "work_mem", "2GB"))
    proof = proof_of(server, {})
    found = sizes(proof)
    assert found['work_mem of role "app"'] == 100 * 3 * 2 * GB
    assert found['parallel workers of role "app"'] == 8 * (6 * MB + 6 * GB)
    assert "connections' work_mem" not in found
    assert proof.share > 1
    formulas = {item.name: item.formula for item in proof.items}
    assert formulas['work_mem of role "app"'] == "100 × 2GB × (1 for a sort + 2 for a hash table)"


def test_a_connection_limit_bounds_the_sessions_of_a_role_or_database() -> None:
    server = with_overrides(
        server_of(18),
        SettingOverride("etl", None, "work_mem", "64MB", connection_limit=3),
        SettingOverride(None, "reports", "hash_mem_multiplier", "4", connection_limit=2),
        SettingOverride(None, "reports", "work_mem", "2MB", connection_limit=2),
    )
    # 3 + 2 sessions with 64 MB × (1 + 4), each with 2 workers of 8 at most; 95 sessions as before.
    found = sizes(proof_of(server, {}))
    both = 'role "etl", database "reports"'
    assert found[f"work_mem of {both}"] == 5 * 64 * 5 * MB
    assert found["connections' work_mem"] == 95 * 12 * MB
    assert found[f"parallel workers of {both}"] == 8 * (6 + 64 * 5) * MB
    assert found["connections"] == 600 * MB


def test_a_smaller_value_of_a_role_changes_nothing() -> None:
    server = with_overrides(server_of(18), SettingOverride("app", None, "work_mem", "1MB"))
    assert sizes(proof_of(server, {})) == sizes(proof_of(server_of(18), {}))
    larger = with_overrides(server_of(18), SettingOverride("app", None, "work_mem", "8MB"))
    planned = {"work_mem": "16MB"}
    assert sizes(proof_of(larger, planned)) == sizes(proof_of(server_of(18), planned))


def test_maintenance_and_workers_of_a_database_count_too() -> None:
    server = with_overrides(
        server_of(18),
        SettingOverride(None, "dwh", "maintenance_work_mem", "1GB"),
        SettingOverride(None, "dwh", "max_parallel_workers", "64"),
    )
    found = sizes(proof_of(server, {"max_worker_processes": "16"}))
    assert found["building an index"] == GB
    assert found["autovacuum workers"] == 3 * GB  # they work inside the database
    assert found["parallel workers"] == 16 * 18 * MB
    own = sizes(proof_of(server, {"autovacuum_work_mem": "64MB"}))
    assert own["autovacuum workers"] == 3 * 64 * MB


def test_hidden_overrides_are_said_to_be_missing_from_the_sum() -> None:
    server = replace(server_of(18), overrides=unknown("permission denied", "pg_db_role_setting"))
    formulas = {item.name: item.formula for item in proof_of(server, {}).items}
    assert formulas["connections' work_mem"].endswith("; per-role and per-database settings are not known")


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        (
            SettingOverride("app", None, "work_mem", "2GB"),
            (
                'work_mem = 2GB of role "app" is too high for that many sessions: lower it, or limit its '
                'sessions: ALTER ROLE "app" CONNECTION LIMIT …'
            ),
        ),
        (
            SettingOverride(None, "dwh", "work_mem", "2GB"),
            (
                'work_mem = 2GB of database "dwh" is too high for that many sessions: lower it, or limit its '
                'sessions: ALTER DATABASE "dwh" CONNECTION LIMIT …'
            ),
        ),
        (
            SettingOverride(None, None, "hash_mem_multiplier", "900"),
            "hash_mem_multiplier = 900 of all roles is too high for that many sessions: lower it",
        ),
    ],
)
def test_an_override_that_is_too_much_is_named_in_the_hint(override: SettingOverride, hint: str) -> None:
    server = with_overrides(server_of(18), SettingOverride("small", None, "work_mem", "5MB"), override)
    proof = proof_of(server, {})
    with pytest.raises(MemoryProofError) as caught:
        check_memory_proof(proof, EffectiveSettings(server), resources(server))
    assert caught.value.hint == hint


def test_without_a_known_limit_there_is_no_proof() -> None:
    server = server_of(18, is_colocated=False)
    assert memory_proof(EffectiveSettings(server), resources_of(host_of(), server, Figures())) is None


# The figures are from "postgres -C shared_memory_size" of the servers the fixtures were read from.
@pytest.mark.parametrize(
    ("major", "shared_buffers", "connections", "told_mb"),
    [
        (15, "1GB", 100, 1074),
        (15, "6GB", 100, 6302),
        (15, "6GB", 300, 6312),
        (15, "16GB", 100, 16771),
        (18, "128MB", 300, 162),
        (18, "1GB", 100, 1086),
        (18, "6GB", 100, 6344),
        (18, "16GB", 300, 16839),
    ],
)
def test_estimated_shared_memory_is_close_to_and_not_below_the_servers_own_figure(
    major: int, shared_buffers: str, connections: int, told_mb: int
) -> None:
    planned = {"shared_buffers": shared_buffers, "max_connections": str(connections)}
    estimated_mb = shared_memory_bytes(EffectiveSettings(server_of(major), planned)) / MB
    assert told_mb <= estimated_mb <= told_mb * 1.01 + 16


def test_before_15_the_servers_allocations_are_taken_as_they_are() -> None:
    # 512 locks a transaction take more than the estimate from initdb's settings knows of.
    server = replace(server_of(14), shared_memory_bytes=Fact(200 * MB, "pg_shmem_allocations"))
    assert shared_memory_bytes(EffectiveSettings(server)) == 200 * MB
    # 2 GB are 1920 MB more: 3 % of them and 16 MB of wal_buffers come on top.
    planned = EffectiveSettings(server, {"shared_buffers": "2GB"})
    assert shared_memory_bytes(planned) == (200 + 1920 + 16) * MB + int(0.03 * 1920 * MB)


@pytest.mark.server
@pytest.mark.parametrize("locks", [64, 512])
def test_a_servers_allocations_are_its_shared_memory(scratch_pg15: RealServer, locks: int) -> None:
    """PostgreSQL 15 has both figures: what 14 tells is measured against what 15 says of itself."""
    # On huge pages allocations are rounded up to whole ones, and this machine's pool may suffice.
    options = [f"max_locks_per_transaction={locks}", "shared_buffers=512MB", "huge_pages=off"]
    scratch_pg15.restart([word for option in options for word in ("-c", option)])
    with contextlib.closing(connect(scratch_pg15.dsn)) as connection:
        server = inspect_server(connection)
    told = {name: guc for name, guc in server.settings.items() if not name.startswith("shared_memory_size")}
    as_14_tells = shared_memory_bytes(EffectiveSettings(replace(server, settings=told)))
    (size_mb,) = scratch_pg15.execute("SHOW shared_memory_size")[0]
    assert int(size_mb.removesuffix("MB")) - 1 <= as_14_tells / MB <= int(size_mb.removesuffix("MB"))


@pytest.mark.server
def test_estimated_shared_memory_agrees_with_this_machines_postgres(scratch_pg18: RealServer) -> None:
    scratch_pg18.stop()
    directory = str(scratch_pg18.data_directory)
    told = scratch_pg18.run(
        "postgres", "-D", directory, "-C", "shared_memory_size", "-c", "shared_buffers=4GB"
    ).stdout
    estimated_mb = shared_memory_bytes(EffectiveSettings(server_of(18), {"shared_buffers": "4GB"})) / MB
    assert int(told) <= estimated_mb <= int(told) * 1.02


def test_what_does_not_fit_is_refused_with_the_sum_and_a_way_out() -> None:
    server = server_of(18)
    settings = EffectiveSettings(server, {"shared_buffers": "2GB"})
    found = resources(server, memory_bytes=4 * GB)
    proof = memory_proof(settings, found)
    assert proof is not None
    with pytest.raises(MemoryProofError) as caught:
        check_memory_proof(proof, settings, found)
    assert str(caught.value) == (
        "the worst case of 4.68\xa0GB is 117\xa0% of the 4\xa0GB this server may use; above 85\xa0% is "
        "refused\nDETAIL:       2\xa0GB  shared_buffers: 2GB\n"
        "  95.6\xa0MB  other shared memory: 22\xa0MB now, plus 3\xa0% of the increase of shared_buffers\n"
        "   600\xa0MB  connections: 100 × 6\xa0MB of private memory\n"
        "  1.17\xa0GB  connections' work_mem: 100 × 4MB × (1 for a sort + 2 for a hash table)\n"
        "   144\xa0MB  parallel workers: 8 × (6\xa0MB + 4MB × (1 for a sort + 2 for a hash table))\n"
        "    64\xa0MB  building an index: 1 × 64MB\n"
        "   192\xa0MB  autovacuum workers: 3 × 64MB (maintenance_work_mem)\n"
        "   444\xa0MB  page tables: 111 processes × 8 bytes per 4kB of 2GB\n"
        "the limit was read from /proc/meminfo\n"
        "HINT:  28 connections would fit instead of 97: state how many you need with --connections 28, "
        "or put a connection pooler in front of the server"
    )
    assert caught.value.exit_code == 4


def test_where_not_even_one_connection_fits_the_hint_does_not_pretend() -> None:
    server = server_of(18)
    settings = EffectiveSettings(server, {"shared_buffers": "2GB"})
    found = resources(server, memory_bytes=2 * GB)
    proof = memory_proof(settings, found)
    assert proof is not None
    with pytest.raises(MemoryProofError) as caught:
        check_memory_proof(proof, settings, found)
    assert caught.value.hint == (
        "lower the largest part, shared_buffers, or give the server 5.5\xa0GB of memory"
    )  # 4788 MB / 0.85


@pytest.mark.parametrize(
    ("name", "setting", "hint"),
    [
        # Of 80 % of 8 GB, 6.55 GB: with 32 MB it would be 11.2 GB, and with 16 MB it is 6.27 GB.
        ("work_mem", "262144", "work_mem = 256MB is too high: work_mem = 16MB would fit"),
        ("shared_buffers", "2097152", "shared_buffers = 16GB is too high: shared_buffers = 2GB would fit"),
        (
            "hash_mem_multiplier",
            "100",
            "hash_mem_multiplier = 100 is too high: hash_mem_multiplier = 6.25 would fit",
        ),
        (
            "autovacuum_work_mem",
            "8388608",
            "autovacuum_work_mem = 8GB is too high: autovacuum_work_mem = 1GB would fit",
        ),
    ],
)
def test_a_value_that_is_too_much_is_named_with_one_that_would_fit(
    name: str, setting: str, hint: str
) -> None:
    server = server_of(18, changes={name: setting})
    found = resources(server, memory_bytes=8 * GB)
    with pytest.raises(MemoryProofError) as caught:
        check_memory_proof(proof_of(server, {}, found), EffectiveSettings(server), found)
    assert (caught.value.hint, caught.value.connections) == (hint, None)


def test_85_percent_is_allowed_and_a_byte_more_is_not() -> None:
    server = server_of(18)
    settings = EffectiveSettings(server)
    total = proof_of(server, {}).total_bytes
    at_limit = resources(server, memory_bytes=-(-total * 100 // 85))
    above = resources(server, memory_bytes=total * 100 // 85 - 2)
    proof = memory_proof(settings, at_limit)
    assert proof is not None
    check_memory_proof(proof, settings, at_limit)
    with pytest.raises(MemoryProofError):
        check_memory_proof(proof_of(server, {}, above), settings, above)
