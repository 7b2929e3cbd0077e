"""Distributions: assignments as os-release(5) allows them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.host.kernel import parse_os_release
from pgdyno.model.facts import Unknown


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"', "Debian GNU/Linux 12 (bookworm)"),
        ("PRETTY_NAME='Arch Linux'", "Arch Linux"),
        ("PRETTY_NAME=Void", "Void"),
        (r'PRETTY_NAME="A \"quoted\" name"', 'A "quoted" name'),
    ],
)
def test_the_distributions_name_may_be_quoted(line: str, name: str) -> None:
    assert parse_os_release(f"NAME=x\n{line}\nID=x\n") == name


def test_a_file_without_a_name_or_with_a_broken_one_is_unknown() -> None:
    assert parse_os_release("NAME=x\n") == Unknown("no PRETTY_NAME")
    assert parse_os_release('PRETTY_NAME="x\n') == Unknown('PRETTY_NAME is not quoted well: "x')


@given(st.text())
def test_no_text_makes_the_parser_fail(text: str) -> None:
    parse_os_release(text)
