"""Documents of bundles: what no store can hold, and what was made to fill memory, is refused."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile_strings import HOSTILE, WRITABLE

from pgdyno.store.bundle_limits import parse

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
