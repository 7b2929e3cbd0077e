"""A server that does not find the pages that were reserved for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from pgdyno.base.errors import HugePagesError, ServerStartError
from pgdyno.measure.arenas.scratch_arena import _start
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.instance import Instance

FATAL = "FATAL:  could not map anonymous shared memory: Cannot allocate memory"


PLAN = Variant("plan", {"huge_pages": "on", "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "9"})


def instance(said: str) -> Instance:
    def start() -> None:
        raise ServerStartError("the server did not start", detail=said)

    return cast("Instance", SimpleNamespace(start=start))


def test_pages_that_somebody_else_has_taken_are_named_as_the_reason() -> None:
    with pytest.raises(HugePagesError) as raised:
        _start(instance(FATAL), PLAN)
    assert raised.value.message == (
        "huge pages reserved for the server of plan are in use by another process"
    )
    assert raised.value.detail == FATAL
    assert raised.value.hint is not None
    assert raised.value.hint.endswith("or leave out the pool with --layers application")


@pytest.mark.parametrize(
    ("variant", "said"), [(Variant("b", {"huge_pages": "on"}), FATAL), (PLAN, "FATAL:  something else")]
)
def test_what_has_other_reasons_is_left_as_it_is(variant: Variant, said: str) -> None:
    with pytest.raises(ServerStartError, match="the server did not start"):
        _start(instance(said), variant)
