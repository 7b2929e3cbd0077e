"""Settings that belong to somebody else are refused, all of them at once."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise

import pytest

from pgdyno.apply.session.ownership import check_managers, check_settings
from pgdyno.base.errors import OwnershipError, SettingError
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import ConfigurationManager


def gucs(**sources: str) -> dict[str, Guc]:
    return {
        name: Guc(name, "1", None, "integer", "sighup", source, "1", "1", "0", "9")
        for name, source in sources.items()
    }


@pytest.mark.parametrize("source", ["default", "configuration file", "override"])
def test_what_configuration_files_say_may_be_changed(source: str) -> None:
    with does_not_raise():
        check_settings(gucs(work_mem=source), {"work_mem": "2"})


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("command line", "on the server's command line, which is stronger than ALTER SYSTEM"),
        ("environment variable", "by an environment variable of the server"),
        ("database", "by ALTER DATABASE … SET for this database"),
        ("user", "by ALTER ROLE … SET for this role"),
        ("client", "by this connection's options (PGOPTIONS or the connection string)"),
    ],
)
def test_what_is_set_elsewhere_is_refused_with_the_place(source: str, reason: str) -> None:
    with pytest.raises(OwnershipError) as caught:
        check_settings(gucs(work_mem=source, jit="default"), {"work_mem": "2", "jit": "1"})
    assert caught.value.message == "1 of 2 settings are managed by others"
    assert caught.value.detail == f"work_mem is set {reason}"


def test_a_server_that_forbids_alter_system_is_left_alone() -> None:
    known = gucs(work_mem="default")
    known["allow_alter_system"] = Guc(
        "allow_alter_system", "off", None, "bool", "sighup", "configuration file", "on", "off"
    )
    with pytest.raises(OwnershipError, match="this server's owner does not allow ALTER SYSTEM") as caught:
        check_settings(known, {"work_mem": "2"})
    assert caught.value.hint == (
        "give the output of pgdyno advise --format conf to whoever manages the configuration"
    )


def test_all_unacceptable_values_are_named_at_once() -> None:
    with pytest.raises(SettingError) as caught:
        check_settings(gucs(work_mem="default"), {"work_mem": "10", "nonesuch": "1"})
    assert caught.value.message == "the server would reject 2 of the values"
    assert caught.value.detail == (
        '10 is outside the valid range for parameter "work_mem"; '
        'unrecognized configuration parameter "nonesuch"'
    )


def test_a_manager_is_named_with_its_evidence_and_where_to_go() -> None:
    manager = ConfigurationManager("Amazon RDS", "the server has the setting rds.x", "the parameter group")
    with pytest.raises(OwnershipError) as caught:
        check_managers([manager])
    assert caught.value.message == "the configuration of this server is managed by Amazon RDS"
    assert caught.value.hint == (
        "change the settings there: the parameter group; pgdyno advise --format conf prints them"
    )


def test_a_file_of_patroni_is_enough_to_recognise_it() -> None:
    with pytest.raises(OwnershipError) as caught:
        check_managers([], "patroni.dynamic.json")
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("the data directory contains patroni.dynamic.json; ")
    check_managers([], None)
