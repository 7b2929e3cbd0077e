"""Parts of a plan, and the variants that show what each is worth."""

from __future__ import annotations

from pgdyno.measure.design.parts import PlanPart, notes_on_parts, parts_of, taken_apart
from pgdyno.model.tuning.tuning import BUILD
from pgdyno.model.variants.variant import Variant


def test_keys_of_one_lever_are_one_part() -> None:
    assert parts_of({"jit": "jit", "max_wal_size": "wal", "min_wal_size": "wal"}, {}) == (
        PlanPart("jit", frozenset({"jit"})),
        PlanPart("wal", frozenset({"max_wal_size", "min_wal_size"})),
    )


def test_of_many_parts_those_with_the_most_potential_stay_separate() -> None:
    names = {f"k{number}": f"p{number}" for number in range(9)}
    parts = parts_of(names, {"p8": 0.3, "p7": 0.2})
    assert [part.name for part in parts] == ["p8", "p7", "p0", "p1", "p2", "p3", "others"]
    assert parts[-1].keys == {"k4", "k5", "k6"}
    ranked = "with the least potential by the profile"
    assert notes_on_parts(parts, {"p8": 0.3}) == (f'"others" holds the changes {ranked}: k4, k5, k6',)
    unranked = "that come last, as no profile ranks them"
    assert notes_on_parts(parts, {}) == (f'"others" holds the changes {unranked}: k4, k5, k6',)


def test_a_plan_of_one_part_is_not_split_and_the_reason_is_given() -> None:
    assert notes_on_parts((), {}) == ("the plan was not split into parts: no change differs between servers",)
    assert notes_on_parts([PlanPart("wal", frozenset({"max_wal_size"}))], {}) == (
        "the plan was not split into parts: all changes belong to wal",
    )


def test_each_part_is_left_out_once_and_alone_once() -> None:
    base = Variant("default", {"port": "1"}, server="plain")
    whole = Variant("plan", {"jit": "off", "work_mem": "64MB"}, server="built")
    parts = [PlanPart("jit", frozenset({"jit"})), PlanPart("build", frozenset({BUILD}))]
    found = {one.name: (one.server, dict(one.settings)) for one in taken_apart(base, whole, parts)}
    assert found == {
        "without-jit": ("built", {"port": "1", "work_mem": "64MB"}),
        "only-jit": ("plain", {"port": "1", "jit": "off"}),
        "without-build": ("plain", {"port": "1", "jit": "off", "work_mem": "64MB"}),
        "only-build": ("built", {"port": "1"}),
    }
