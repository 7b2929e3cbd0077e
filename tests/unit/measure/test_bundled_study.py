"""Options of studies: which text of several counts, and what is recorded."""

from __future__ import annotations

from pgdyno.measure.bundled_study import Option, is_given, last, separated


def test_the_last_text_counts_and_a_repeatable_option_has_all() -> None:
    assert (last(("a", "b")), last(())) == ("b", None)
    assert separated(("a,b", "c")) == ("a", "b", "c")
    assert is_given(("",))
    assert not is_given(())


def test_what_reproduces_a_study_is_recorded() -> None:
    assert Option("mode", "h", last).recorded(("a", "b")) == "b"
    assert Option("step", "h", separated, is_repeatable=True).recorded(("a", "b,c")) == "a,b,c"
    assert Option("mode", "h", last, usual="corrected").recorded(()) == "corrected"
    assert Option("mode", "h", last, is_recorded=False).recorded(("a",)) is None
