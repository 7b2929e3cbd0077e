"""Documents: expected JSON written by hand."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.facts import Fact, to_document, unknown
from pgdyno.host.host import HugePagePool
from pgdyno.model.plans.plan import Change, Effect, MemoryItem, MemoryProof


class Colour(StrEnum):
    RED = "red"


class Level(Enum):
    HIGH = 3


@dataclass(frozen=True)
class Inner:
    size_bytes: int
    colour: Colour


@dataclass(frozen=True)
class Outer:
    name: str
    inner: tuple[Inner, ...]
    note: str | None = None


def test_dataclass_becomes_an_object_with_its_fields_in_order() -> None:
    outer = Outer("a", (Inner(8192, Colour.RED),))
    assert json.dumps(to_document(outer)) == (
        '{"name": "a", "inner": [{"size_bytes": 8192, "colour": "red"}], "note": null}'
    )


def test_known_fact_keeps_value_and_source() -> None:
    assert to_document(Fact(24, "/proc/meminfo")) == {"value": 24, "source": "/proc/meminfo"}


def test_unknown_fact_says_why_and_has_no_value() -> None:
    assert to_document(unknown("permission denied", "/proc/1/limits")) == {
        "unknown": "permission denied",
        "source": "/proc/1/limits",
    }


def test_fact_of_none_is_known_and_null() -> None:
    assert to_document(Fact(None, "query")) == {"value": None, "source": "query"}


def test_fact_with_huge_page_pools_has_string_keys() -> None:
    pools = Fact({2097152: HugePagePool(512, 500, 12, 0)}, "/sys/kernel/mm/hugepages")
    assert to_document(pools) == {
        "value": {"2097152": {"total": 512, "free": 500, "reserved": 12, "surplus": 0}},
        "source": "/sys/kernel/mm/hugepages",
    }


def test_properties_are_left_out() -> None:
    proof = MemoryProof((MemoryItem("shared_buffers", "128MB", 134217728),), 1 << 30, "/proc/meminfo")
    assert to_document(proof) == {
        "items": [{"name": "shared_buffers", "formula": "128MB", "size_bytes": 134217728}],
        "limit_bytes": 1073741824,
        "limit_source": "/proc/meminfo",
    }


def test_enums_become_their_values_also_as_keys() -> None:
    change = Change("jit", "setting", "jit", "on", "off", Effect.RELOAD)
    assert to_document(change) == {
        "lever": "jit",
        "kind": "setting",
        "key": "jit",
        "current": "on",
        "value": "off",
        "effect": "reload",
    }
    assert to_document({Colour.RED: Level.HIGH}) == {"red": 3}


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_that_json_does_not_have_become_null(value: float) -> None:
    assert to_document({"high": value}) == {"high": None}


def test_booleans_stay_booleans_and_paths_become_strings() -> None:
    assert to_document((True, PurePosixPath("/sys/block"))) == [True, "/sys/block"]


def test_sets_are_sorted_so_that_documents_are_reproducible() -> None:
    assert to_document(frozenset({"b", "a"})) == ["a", "b"]


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (b"\x00", "a bytes has no JSON form"),
        (object(), "a object has no JSON form"),
        ({(1, 2): 3}, "a tuple cannot be the key of a JSON object"),
        ({True: 1}, "a bool cannot be the key of a JSON object"),
    ],
)
def test_what_has_no_json_form_is_refused_by_name(thing: object, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        to_document(thing)


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@given(plain_json)
def test_what_is_json_already_stays_as_it_is(document: Any) -> None:
    assert to_document(document) == document
