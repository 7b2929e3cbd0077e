"""Experiments as documents: nothing is lost, nothing else is accepted, and errors say where."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.synthetic import experiment
from tests.hostile_strings import HOSTILE, WRITABLE

from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Experiment, Stopping
from pgdyno.model.variants.variant import Variant
from pgdyno.store.documents import SCHEMA_VERSION, dump_experiment, experiment_schema, load_experiment, parse


def test_document_gives_back_the_same_experiment_by_way_of_json() -> None:
    text = json.dumps(dump_experiment(experiment()))
    assert load_experiment(json.loads(text)) == experiment()


def test_document_starts_with_its_schema_version() -> None:
    document = dump_experiment(experiment())
    assert next(iter(document.items())) == ("schema_version", 1)


def test_document_of_a_newer_version_is_refused_with_a_hint() -> None:
    with pytest.raises(StorageError) as caught:
        load_experiment({**dump_experiment(experiment()), "schema_version": SCHEMA_VERSION + 1})
    assert str(caught.value) == (
        "the document has schema version 2\n"
        "DETAIL:  this pgdyno reads versions up to 1\n"
        "HINT:  upgrade pgdyno: pip install --upgrade pgdyno"
    )


@pytest.mark.parametrize(
    ("version", "detail"),
    [
        (None, "schema_version is missing"),
        ("1", "schema_version is '1'"),
        (True, "schema_version is True"),
        (0, "schema_version is 0"),
    ],
)
def test_document_without_a_valid_version_is_refused(version: object, detail: str) -> None:
    with pytest.raises(StorageError) as caught:
        load_experiment({**dump_experiment(experiment()), "schema_version": version})
    assert str(caught.value) == f"the document has no valid schema version\nDETAIL:  {detail}"


def test_everything_that_is_wrong_is_named_by_its_path() -> None:
    document: dict[str, Any] = json.loads(json.dumps(dump_experiment(experiment())))
    del document["question"]
    document["design"]["kind"] = "solo"
    document["verdicts"][0]["effect"] = "fast"
    with pytest.raises(StorageError) as caught:
        load_experiment(document)
    assert str(caught.value) == (
        "the document is not an experiment\n"
        "DETAIL:  question: field required\n"
        "design.kind: input should be 'duet' or 'alternating'\n"
        "verdicts.0.effect: input should be a valid number, unable to parse string as a number"
    )


def test_list_of_problems_is_bounded() -> None:
    document: dict[str, Any] = json.loads(json.dumps(dump_experiment(experiment())))
    with pytest.raises(StorageError) as caught:
        load_experiment({name: 3 for name in document if name != "schema_version"} | {"schema_version": 1})
    lines = (caught.value.detail or "").splitlines()
    assert len(lines) == 9
    assert re.fullmatch(r"and \d\d more", lines[-1])


@pytest.mark.parametrize(
    ("member", "value", "place"),
    [
        ("blocks", [3] * 10, "blocks.0"),
        ("notes", ["fine"] * 5 + [3] * 10, "notes.5"),
        ("scales", {f"w{n}": "many" for n in range(10)}, "scales.w0"),
        ("scales", {"w" * 1_000_000: "many"}, "scales." + "w" * 193),
    ],
)
def test_of_a_list_or_mapping_the_first_wrong_member_is_named(member: str, value: object, place: str) -> None:
    with pytest.raises(StorageError) as caught:
        load_experiment({**dump_experiment(experiment()), member: value})
    (line,) = (caught.value.detail or "").splitlines()
    assert line.partition(":")[0] == place


def test_members_of_a_later_addition_are_ignored() -> None:
    document = {**dump_experiment(experiment()), "weather": "fine"}
    assert load_experiment(document) == experiment()


def test_members_added_since_may_be_missing() -> None:
    document: dict[str, Any] = json.loads(json.dumps(dump_experiment(experiment())))
    del document["notes"]
    for verdict in document["verdicts"]:
        del verdict["equivalence"]
    assert load_experiment(document) == replace(experiment(), notes=())


def test_schema_describes_what_is_written() -> None:
    schema = experiment_schema()
    document = dump_experiment(experiment())
    assert schema["properties"]["schema_version"]["const"] == 1
    assert set(schema["required"]) < set(schema["properties"]) == set(document)
    assert schema["$defs"]["Decision"]["enum"] == ["better", "worse", "equivalent", "inconclusive"]


texts = st.text(max_size=20)
finite = st.floats(allow_nan=False, allow_infinity=False)
blocks = st.builds(
    Block,
    workload=texts,
    round=st.integers(0, 99),
    index=st.integers(0, 99),
    started_ns=st.integers(0, 1 << 62),
    arms=st.lists(
        st.builds(
            ArmBlock,
            variant=texts,
            transactions=st.integers(0, 1 << 40),
            running_s=finite,
            values=st.dictionaries(texts, finite, max_size=3),
        ),
        max_size=2,
    ).map(tuple),
    void=st.none() | texts,
    audit=st.dictionaries(texts, finite, max_size=3),
)
experiments = st.builds(
    Experiment,
    id=texts,
    name=texts,
    question=texts,
    created=texts,
    pgdyno_version=texts,
    design=st.builds(Design, seed=st.integers(), stopping=st.sampled_from(Stopping), slice_s=finite),
    variants=st.lists(
        st.builds(Variant, name=texts, settings=st.dictionaries(texts, texts, max_size=3)), max_size=3
    ).map(tuple),
    baseline=texts,
    workloads=st.lists(texts, max_size=3).map(tuple),
    reset_policies=st.just({}),
    blocks=st.lists(blocks, max_size=3).map(tuple),
    notes=st.lists(texts, max_size=3).map(tuple),
    is_complete=st.booleans(),
)


@settings(max_examples=60)
@given(experiments)
def test_any_experiment_survives_the_way_through_json(one: Experiment) -> None:
    assert load_experiment(json.loads(json.dumps(dump_experiment(one)))) == one


numbers = st.integers(-(10**19), 10**19) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_python_writes_is_read_as_json_reads_it(value: object) -> None:
    assert parse(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NaN", "NaN is not a JSON number"),
        ("-Infinity", "-Infinity is not a JSON number"),
        ("1e999", "1e999 is not a number that can be stored"),
        ("-1.5e309", "-1.5e309 is not a number that can be stored"),
        ("0." + "1" * 400, f"0.{'1' * 38} is not a number that can be stored"),
        ("9" * 400, "a number has 400 digits"),
        ("-" + "9" * 21, "a number has 21 digits"),
        ("[" * 65 + "]" * 65, "it is nested deeper than 64"),
        ('{"a":' * 65 + "1" + "}" * 65, "it is nested deeper than 64"),
        (f"[{'{},' * 400_000}1]", "it has 400001 lists and objects in 1200003 characters"),
    ],
)
def test_a_document_is_refused_that_no_experiment_has(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)) as caught:
        parse(text)
    assert str(caught.value) == why


def test_limits_leave_room_for_what_experiments_have() -> None:
    assert parse("[" * 64 + "]" * 64)
    assert parse("18446744073709551615") == 2**64 - 1
    assert math.isclose(parse("1.7976931348623157e308"), 1.7976931348623157e308)


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_are_read_as_they_are_or_refused(text: str) -> None:
    document = json.dumps({"a": [text], text: 1})
    if text in WRITABLE:
        assert parse(document) == {"a": [text], text: 1}
    elif "\0" not in text:
        with pytest.raises(UnicodeEncodeError):
            parse(document)
