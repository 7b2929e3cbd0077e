"""The durability lock says no, whoever asks, and reports what it finds."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext as does_not_raise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fix_settings import MAJORS, server_of, set_by, settings_of

from pgdyno.base.errors import DurabilityError
from pgdyno.plan.engine.durability import LOCKED_SETTINGS, check_durability, durability_findings

HINT = (
    "HINT:  write such a variant into an experiment file, for a server that pgdyno creates; "
    "its results are marked as not durable"
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fsync", "off"),
        ("fsync", "false"),
        ("full_page_writes", "off"),
        ("synchronous_commit", "off"),
        ("synchronous_commit", "local"),
        ("zero_damaged_pages", "on"),
        ("autovacuum", "off"),
        ("ignore_checksum_failure", "on"),
        ("wal_level", "minimal"),
        ("data_checksums", "off"),
        ("track_counts", "off"),
        ("data_sync_retry", "on"),
        ("ignore_invalid_pages", "on"),
    ],
)
def test_a_setting_that_could_lose_data_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(DurabilityError) as caught:
        check_durability({"shared_buffers": "6GB", name: value}, server_of(18))
    assert str(caught.value) == (
        f"{name}={value} could lose committed data\nDETAIL:  durability is never traded for speed\n{HINT}"
    )
    assert caught.value.exit_code == 4


def test_upper_case_is_no_way_around_the_lock() -> None:
    with pytest.raises(DurabilityError, match=r"^fsync=off, wal_level=minimal could lose"):
        check_durability({"FSYNC": "off", "Wal_Level": "minimal"}, server_of(18))


def test_all_of_them_are_named_at_once() -> None:
    with pytest.raises(
        DurabilityError, match=r"^fsync=off, full_page_writes=off, wal_level=minimal could lose"
    ):
        check_durability({"wal_level": "minimal", "fsync": "off", "full_page_writes": "off"}, server_of(18))


def test_the_wal_level_may_rise_but_not_fall() -> None:
    logical = server_of(18, changes={"wal_level": "logical"})
    check_durability({"wal_level": "logical"}, server_of(18))
    with pytest.raises(DurabilityError, match=r"^wal_level=replica could lose"):
        check_durability({"wal_level": "replica"}, logical)


def test_synchronous_standbys_stay_as_they_are() -> None:
    server = server_of(18, changes={"synchronous_standby_names": "ANY 1 (a, b)"})
    check_durability({"synchronous_standby_names": "ANY 1 (a, b)"}, server)
    with pytest.raises(DurabilityError, match="synchronous_standby_names=''"):
        check_durability({"synchronous_standby_names": ""}, server)


def test_the_safe_values_are_not_refused() -> None:
    safe = {"fsync": "on", "synchronous_commit": "remote_apply", "autovacuum": "on", "work_mem": "64MB"}
    with does_not_raise():
        check_durability(safe, server_of(18))


# PostgreSQL accepts unambiguous prefixes and any case; what the lock does not know it refuses.
@given(st.sampled_from(["of", "f", "FALSE", "no", "0", " Off ", "n", "oFf"]))
def test_other_spellings_of_off_are_refused_too(spelling: str) -> None:
    with pytest.raises(DurabilityError):
        check_durability({"fsync": spelling}, server_of(18))


@pytest.mark.parametrize("major", MAJORS)
def test_every_locked_setting_is_one_that_servers_know(major: int) -> None:
    assert set(settings_of(major)) >= LOCKED_SETTINGS


def test_fsync_off_when_found_is_a_danger_and_is_left_alone() -> None:
    [finding] = durability_findings(server_of(18, changes={"fsync": "off"}))
    assert finding.severity == "danger"
    assert finding.message == "fsync is off: a crash of the machine can destroy the whole cluster"
    assert finding.hint == "pgdyno does not change it; unless intended: ALTER SYSTEM SET fsync = on"


def test_commit_that_waits_for_this_server_only_is_a_warning() -> None:
    [finding] = durability_findings(server_of(18, changes={"synchronous_commit": "local"}))
    assert finding.severity == "warning"
    assert finding.message == (
        "synchronous_commit is local: committed transactions survive a crash of this server, "
        "but may be missing on a standby"
    )


def test_a_wal_level_or_missing_checksums_when_found_are_their_owners_choice() -> None:
    gucs = set_by(settings_of(18), {"wal_level": "minimal", "data_checksums": "off"})
    assert durability_findings(server_of(18, settings=gucs)) == []


@pytest.mark.parametrize("major", MAJORS)
def test_a_fresh_cluster_has_no_durability_findings(major: int) -> None:
    assert durability_findings(server_of(major)) == []


def test_a_server_that_hides_a_setting_is_not_guessed_about() -> None:
    settings = {name: guc for name, guc in settings_of(18).items() if name != "fsync"}
    assert durability_findings(dataclasses.replace(server_of(18), settings=settings)) == []
