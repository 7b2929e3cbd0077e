"""What is left out of a peer's configuration beside other servers, and why."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise

import pytest
from tests.fix_settings import GB, MAJORS, server_of

from pgdyno.plan.peers import load, pgtune
from pgdyno.plan.peers._contract import PeerFacts
from pgdyno.plan.peers.comparable import LeftOut, accepted_by, comparable, left_out_notes, with_room_for


def test_what_the_build_rejects_is_left_out_and_named() -> None:
    settings = pgtune.settings(PeerFacts(24 * GB, 2, 18, "ssd"))
    peer = accepted_by(server_of(18), settings)
    assert peer.left_out == (
        LeftOut(
            "wal_compression",
            "lz4",
            'invalid value for parameter "wal_compression": "lz4"; this build supports: pglz, on, off',
        ),
        LeftOut(
            "io_method",
            "io_uring",
            'invalid value for parameter "io_method": "io_uring"; this build supports: sync, worker',
        ),
    )
    assert set(settings) - set(peer.settings) == {"wal_compression", "io_method"}


def test_a_setting_of_another_major_is_left_out_too() -> None:
    settings = pgtune.settings(PeerFacts(24 * GB, 2, 18, "ssd"))
    assert LeftOut("io_method", "io_uring", 'PostgreSQL 15.18 has no setting "io_method"') in (
        accepted_by(server_of(15), settings).left_out
    )


@pytest.mark.parametrize("major", MAJORS)
def test_what_remains_is_accepted_by_every_major(major: int) -> None:
    server = server_of(major)
    settings = pgtune.settings(PeerFacts(24 * GB, 2, major, "ssd"))
    with does_not_raise():
        for name, value in accepted_by(server, settings).settings.items():
            server.settings[name].check(value)


def test_what_all_servers_have_alike_is_taken_out_with_its_reason() -> None:
    found = comparable(
        server_of(18),
        {
            "fsync": "on",
            "synchronous_standby_names": "",
            "listen_addresses": "*",
            "ssl_min_protocol_version": "TLSv1.2",
            "shared_preload_libraries": "timescaledb",
            "timescaledb.max_background_workers": "16",
            "track_io_timing": "on",
            "log_statement": "ddl",
            "work_mem": "96MB",
        },
    )
    assert found.settings == {"work_mem": "96MB"}
    assert {one.name: one.reason for one in found.left_out} == {
        "fsync": "all servers are equally durable",
        "synchronous_standby_names": "all servers are equally durable",
        "listen_addresses": "scratch servers are accessible only through a private socket",
        "ssl_min_protocol_version": "scratch servers are accessible only through a private socket",
        "shared_preload_libraries": "the compared servers load no extensions",
        "timescaledb.max_background_workers": "the compared servers load no extensions",
        "track_io_timing": "monitoring has a cost, and none of the servers is monitored",
        "log_statement": "monitoring has a cost, and none of the servers is monitored",
    }
    notes = list(left_out_notes("some-tool", found.left_out))
    assert notes[0] == (
        "some-tool without fsync = on, synchronous_standby_names = '': all servers are equally durable"
    )
    assert len(notes) == 4


def test_a_place_that_no_variant_may_name_is_left_out() -> None:
    (left_out,) = comparable(server_of(18), {"archive_command": "true"}).left_out
    assert left_out == LeftOut("archive_command", "true", "it names a program to run")


@pytest.mark.parametrize(
    ("settings", "clients", "expected"),
    [
        ({"max_connections": "25", "reserved_connections": "1"}, 4, "25"),  # 4 + 10 + 3 + 1 fit
        ({"max_connections": "25"}, 16, "29"),  # 16 + 10, and 3 that are reserved for superusers
        ({}, 200, "213"),
    ],
)
def test_connections_are_raised_to_what_the_load_needs(
    settings: dict[str, str], clients: int, expected: str
) -> None:
    assert with_room_for(clients, server_of(18), settings)["max_connections"] == expected


def test_what_a_server_has_by_itself_may_be_enough() -> None:
    assert with_room_for(64, server_of(18), {"jit": "off"}) == {"jit": "off"}


@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize("peer", sorted(load()))
def test_every_peers_arm_is_accepted_and_leaves_durability_alone(peer: str, major: int) -> None:
    server = server_of(major)
    settings = load()[peer].settings(PeerFacts(4 * GB, 2, major, "ssd", disk_bytes=64 * GB))
    assert isinstance(settings, dict)
    found = comparable(server, settings).settings
    for name, value in found.items():
        server.settings[name].check(value)
    assert "shared_buffers" in found
    assert not {"fsync", "full_page_writes", "synchronous_commit", "wal_level", "autovacuum"} & found.keys()
