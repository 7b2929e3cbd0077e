"""advise: the plan, written down as asked."""

from __future__ import annotations

import json

import pytest
from tests.fix_settings import GB, host_of, server_of

from pgdyno.base.errors import MemoryProofError, UsageError
from pgdyno.plan.advise import AdviseRequest, advise, format_names
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.plan.engine.resources import Figures


def test_text_is_the_default() -> None:
    advice = advise(host_of(), server_of(18), AdviseRequest())
    assert advice.plan.settings["shared_buffers"] == "6GB"
    assert "shared_buffers" in advice.text
    assert "Worst-case memory" in advice.text


OF_THE_MACHINE = ("sysctl", "systemd", "tuned", "udev")


@pytest.mark.parametrize("name", [name for name in format_names() if name not in OF_THE_MACHINE])
def test_every_format_of_settings_names_all_of_the_plan(name: str) -> None:
    advice = advise(host_of(), server_of(18), AdviseRequest(format_name=name))
    assert all(setting in advice.text for setting in advice.plan.settings)


def test_json_is_one_document() -> None:
    advice = advise(host_of(), server_of(18), AdviseRequest(format_name="json"))
    assert json.loads(advice.text)["settings"] == advice.plan.settings


def test_an_unknown_format_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UsageError) as caught:
        advise(host_of(), server_of(18), AdviseRequest(format_name="yaml"))
    assert str(caught.value) == (
        'unknown format "yaml"'
        "\nHINT:  use one of text, ansible, aurora, azure, cloudsql, cnpg, "
        "conf, crunchy, json, patroni, rds, sql, sysctl, systemd, terraform, tuned, udev, zalando"
    )


def test_a_plan_that_does_not_fit_is_refused() -> None:
    small = PlanRequest(figures=Figures(memory_bytes=200 << 20))
    with pytest.raises(MemoryProofError):
        advise(None, server_of(18, is_colocated=False), AdviseRequest(plan=small))


def test_a_plan_for_fewer_connections_is_for_readers_alone() -> None:
    small = PlanRequest(figures=Figures(memory_bytes=1 * GB))
    advice = advise(None, server_of(18, is_colocated=False), AdviseRequest(plan=small))
    assert advice.refused is not None
    assert advice.refused.connections == 12
    assert advice.plan.settings["max_connections"] == "15"
    for name in ("conf", "json"):
        with pytest.raises(MemoryProofError):
            advise(None, server_of(18, is_colocated=False), AdviseRequest(plan=small, format_name=name))
