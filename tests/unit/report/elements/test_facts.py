"""Facts as rows, from documents of this and of other versions."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.synthetic import HOST, SERVER

from pgdyno.report.elements.facts import FactRow, all_facts, configured_settings, host_facts, server_facts


def test_host_facts_are_read_with_their_sources() -> None:
    rows = {row.label: row for row in host_facts(HOST)}
    assert rows["Memory"] == FactRow("Memory", "32\N{NO-BREAK SPACE}GB", "/proc/meminfo")
    assert rows["Storage"].value == "nvme0n1, 512\N{NO-BREAK SPACE}GB, solid state, scheduler none"
    assert rows["File systems"].value == "ext4 at /srv"
    assert rows["CPU limit"].value == "8"


def test_unknown_fact_says_why() -> None:
    governor = next(row for row in host_facts(HOST) if row.label == "Frequency governor")
    assert governor.value == "unknown: no such file: frequency is not visible to this virtual machine"
    assert not governor.is_known


def test_server_facts_are_read() -> None:
    rows = {row.label: row.value for row in server_facts(SERVER)}
    assert rows["PostgreSQL"] == "18.6"
    assert rows["JIT available"] == "no"
    assert rows["Standbys"] == "0"
    assert "Hidden from the role" not in rows


def test_configured_settings_are_those_somebody_has_set_in_readable_units() -> None:
    rows = [(s.name, s.value, s.origin) for s in configured_settings(SERVER)]
    assert rows == [
        ("listen_addresses", "''", "/etc/postgresql/18/main/postgresql.conf:60"),
        ("max_connections", "100", "/etc/postgresql/18/main/postgresql.conf:65"),
        ("shared_buffers", "128MB", "/etc/postgresql/18/main/postgresql.conf:130"),
    ]


def test_all_facts_are_listed_by_their_path() -> None:
    rows = {row.label: row for row in all_facts(HOST)}
    assert rows["kernel.sysctls.vm.swappiness"] == FactRow(
        "kernel.sysctls.vm.swappiness", "60", "/proc/sys/vm/swappiness"
    )
    assert rows["cpu.isa_features"].value == "avx2, avx512f, sse4_2"
    assert all_facts(SERVER, without=("settings",))[0] == FactRow("version_num", "180006", "")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"settings": None},
        {"settings": {"a": None, "b": 3, "c": {}}},
        {"cpu": "gone"},
        {"block_devices": {"value": "none", "source": "x"}, "mounts": {"value": [1], "source": "x"}},
    ],
)
def test_documents_of_another_shape_are_read_as_far_as_they_go(document: dict[str, Any]) -> None:
    with does_not_raise():
        host_facts(document)
        server_facts(document)
        all_facts(document)
        configured_settings(document)


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["value", "unknown", "source", "cpu", "model", "settings", "setting", "unit", "mounts"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "settings", "mounts", "block_devices"]), documents))
def test_no_document_makes_the_report_fail(document: dict[str, Any]) -> None:
    with does_not_raise():
        host_facts(document)
        server_facts(document)
        all_facts(document)
        configured_settings(document)
