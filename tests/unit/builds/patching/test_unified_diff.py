"""Unified diffs, written by hand: what they change, and what they must not."""

from __future__ import annotations

import pytest

from pgdyno.builds.patching.unified_diff import (
    DiffError,
    FileChange,
    Hunk,
    HunkError,
    apply_change,
    parse_diff,
)

DIFF = """\
--- a/src/main.c
+++ b/src/main.c
@@ -1,3 +1,3 @@ int main(void)
 one
-two
+TWO
 three
@@ -7,2 +7,3 @@
 seven
+between
 eight
--- a/README
+++ b/README
@@ -1 +1 @@
-old
+new
"""
TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"


def changed(text: str, diff: str = DIFF) -> str:
    return apply_change(parse_diff(diff)[0], text)


def refused(text: str, diff: str = DIFF) -> str:
    with pytest.raises(HunkError) as caught:
        changed(text, diff)
    return str(caught.value)


def test_a_diff_is_read_file_by_file() -> None:
    assert parse_diff(DIFF) == (
        FileChange(
            "src/main.c",
            (
                Hunk(1, ("one", "two", "three"), ("one", "TWO", "three")),
                Hunk(7, ("seven", "eight"), ("seven", "between", "eight")),
            ),
        ),
        FileChange("README", (Hunk(1, ("old",), ("new",)),)),
    )


def test_its_hunks_are_applied() -> None:
    assert changed(TEXT) == "one\nTWO\nthree\nfour\nfive\nsix\nseven\nbetween\neight\n"


def test_hunks_that_have_moved_are_found_and_others_move_with_them() -> None:
    # With "eight" in a second place behind, the second hunk has its place by the first one's offset alone.
    text = f"zero\nzero\n{TEXT}seven\neight\n"
    assert changed(text) == (
        "zero\nzero\none\nTWO\nthree\nfour\nfive\nsix\nseven\nbetween\neight\nseven\neight\n"
    )


def test_lines_that_were_added_or_taken_away_between_hunks_are_kept() -> None:
    assert changed(TEXT.replace("five\n", "")) == "one\nTWO\nthree\nfour\nsix\nseven\nbetween\neight\n"


def test_a_line_ends_with_a_newline_and_with_nothing_else() -> None:
    text = TEXT.replace("four", "four\x0c\r\u2028four")
    assert changed(text) == text.replace("two", "TWO").replace("seven\n", "seven\nbetween\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            TEXT.replace("two", "2"),
            'src/main.c, hunk 1 of 2: line 2 should be "two", but is "2"',
        ),
        (
            TEXT.replace("two", "two "),
            'src/main.c, hunk 1 of 2: line 2 should be "two", but has other white space',
        ),
        ("one\ntwo\n", 'src/main.c, hunk 1 of 2: line 3 should be "three", but is after the end of the file'),
        ("one\ntwo", 'src/main.c, hunk 1 of 2: line 3 should be "three", but is after the end of the file'),
        (
            f"zero\n{TEXT}zero\n{TEXT}",
            "src/main.c, hunk 1 of 2: its lines occur 2 times, and not at their original place",
        ),
        (
            "seven\neight\n" + TEXT.replace("seven\neight\n", ""),
            'src/main.c, hunk 2 of 2: line 9 should be "seven", but is after the end of the file',
        ),
    ],
    ids=["other line", "blank at its end", "too short", "no end", "twice", "wrong order"],
)
def test_a_hunk_without_its_place_is_named_with_what_is_there(text: str, said: str) -> None:
    assert refused(text) == said


def test_a_hunk_never_takes_lines_that_another_one_has_changed() -> None:
    diff = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -3,2 +3,2 @@\n b\n-c\n+C\n"
    assert refused("a\nb\nc\n", diff) == 'f, hunk 2 of 2: line 3 should be "b", but is "c"'


def test_a_patch_is_not_applied_twice() -> None:
    assert refused(changed(TEXT)) == 'src/main.c, hunk 1 of 2: line 2 should be "two", but is "TWO"'


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../configure", "src/../../configure", "src/./main.c", "src//main.c", "",
        ".git/config", "src/.hidden", "src/main.c\t2026-11-25", "src/main.c/", "~/x", "src\\main.c", "-rf",
        "maın.c",
    ],
)  # fmt: skip
def test_a_path_that_may_lead_out_of_a_tree_is_refused(path: str) -> None:
    with pytest.raises(DiffError):
        parse_diff(f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+new\n")


@pytest.mark.parametrize(
    "diff",
    [
        "",
        DIFF.rstrip("\n"),
        DIFF.replace("--- a/README", "--- /dev/null"),
        DIFF.replace("+++ b/README", "+++ b/README.md"),
        DIFF.replace("--- a/README", "rename from a\n--- a/README"),
        DIFF.replace("@@ -1 +1 @@", "@@ -1 +1,2 @@"),
        DIFF.replace("@@ -1 +1 @@", "@@ -one +1 @@"),
        DIFF.replace("@@ -1 +1 @@\n-old\n+new\n", ""),
        DIFF.replace("@@ -1 +1 @@\n-old\n", "@@ -0,0 +1 @@\n"),
        DIFF.replace("+new\n", "+new\n\\ No newline at end of file\n"),
        DIFF.replace("+new", "+old"),
        DIFF.replace("@@ -7,2 +7,3 @@", "@@ -2,2 +2,3 @@"),
        DIFF.replace("a/README", "a/src/main.c").replace("b/README", "b/src/main.c"),
        DIFF.replace(" three", "three"),
        DIFF.replace(" three\n", "\n"),
    ],
)
def test_anything_but_a_plain_diff_of_files_that_stay_is_refused(diff: str) -> None:
    with pytest.raises(DiffError):
        parse_diff(diff)
