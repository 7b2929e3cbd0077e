"""Behaviours of a hostile server: what it says instead of what a PostgreSQL would."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from tests.hostile.peer import Behaviour, Instead, Message, Sent
from tests.hostile.rows import Column, Value, altered, columns, description, row, values
from tests.hostile_strings import HOSTILE

BOOL, INTEGERS, NUMBERS = 16, frozenset({20, 21, 23, 26}), frozenset({700, 701, 1700})
TEXTS = frozenset({18, 19, 25, 1043})
MANY_ROWS, LARGE_BYTES = 1_000_000, 100 << 20
_AT_ONCE = 2000  # messages in one write of an endless stream
_TEXTS = [text.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80") for text in HOSTILE]
_TEXTS += [b"\xff\xfe", b"\xe2\x82", b"99.99; rm -rf", b"\x1b]52;c;aWQ=\x07", b"{" * 50_000, b"[" * 50_000]
_BEYOND = (b"9" * 400, b"-1", b"1e400", b"NaN", b"Infinity", b"0", b"9223372036854775807", b"-2147483648")


@dataclass(frozen=True)
class Case:
    """A behaviour by its name. ``may_end_well``: a command need not fail of it."""

    name: str
    make: Callable[[], Behaviour]
    may_end_well: bool = False


def after(
    answers: int, act: Callable[[Message], Iterable[Sent]], tag: bytes = b""
) -> Callable[[], Behaviour]:
    """Let messages pass until so many answers are complete, then act on each (with this tag)."""

    def behave(message: Message) -> Iterable[Sent]:
        is_due = message.answers >= answers and (not tag or message.tag == tag)
        return act(message) if is_due else (message.encoded(),)

    return lambda: behave


def instead(*sent: Sent) -> Callable[[Message], Iterable[Sent]]:
    """Send this in place of a message."""
    return lambda _: sent


def endless(chunk: Callable[[int], bytes], *, before: bool = False) -> Callable[[Message], Iterator[Sent]]:
    """Send chunk after chunk, for as long as the client takes them; ``before``: after the message itself."""

    def act(message: Message) -> Iterator[Sent]:
        if before:
            yield message.encoded()
        yield from map(chunk, itertools.count())

    return act


def cut(message: Message) -> Iterator[Sent]:
    """Send half a message and leave."""
    whole = message.encoded()
    yield whole[: max(1, len(whole) // 2)]
    yield Instead.CLOSE


def error(*fields: bytes) -> Callable[[Message], Iterator[Sent]]:
    """Answer each query with an error of these fields."""
    body = b"".join(field + b"\0" for field in fields) + b"\0"

    def act(message: Message) -> Iterator[Sent]:
        if message.tag == b"Z":
            yield Message(b"E", body).encoded()
            yield message.encoded()

    return act


def once(answers: int) -> Callable[[], Behaviour]:
    """Close all connections when so many answers are complete, as a restart does, and go on."""
    return after(answers, lambda m: (Instead.CLOSE,) if m.answers == answers else (m.encoded(),))


class Results:
    """Alters results: each column's description, and each value of its rows."""

    def __init__(
        self,
        alter: Callable[[Column, Value], Value] = lambda _, value: value,
        describe: Callable[[Column], Column] = lambda column: column,
    ) -> None:
        """Take what is said of a value, and of a column."""
        self._alter, self._describe = alter, describe
        self._columns: list[Column] = []

    def __call__(self, message: Message) -> Iterator[Sent]:
        """Alter one message."""
        if message.tag == b"T":
            self._columns = columns(message.body)
            described = [self._describe(column) for column in self._columns]
            yield Message(b"T", description(described)).encoded()
        elif message.tag == b"D":
            yield Message(b"D", altered(message.body, self._columns, self._alter)).encoded()
        else:
            yield message.encoded()


def repeated(message: Message) -> Iterator[Sent]:
    """Send a row a million times."""
    for _ in range(MANY_ROWS // _AT_ONCE):
        yield message.encoded() * _AT_ONCE


def large(column: Column, value: Value) -> Value:
    """Say a value of 100 MB in each column of text."""
    return b"x" * LARGE_BYTES if column.type_oid in TEXTS else value


def version(column: Column, value: Value) -> Value:
    """Say a version that is none."""
    return b"99.99; rm -rf" if value and value.startswith((b"18.", b"15.", b"PostgreSQL 1")) else value


def beyond(which: bytes) -> Callable[[Column, Value], Value]:
    """Say one number everywhere, also in settings."""

    def alter(column: Column, value: Value) -> Value:
        is_number = column.type_oid in INTEGERS | NUMBERS or (value or b"").isdigit()
        return which if is_number and value is not None else value

    return alter


def other_type(column: Column) -> Column:
    """Say that texts are numbers and numbers are texts."""
    return Column(column.name, 25 if column.type_oid in INTEGERS | {BOOL} else 23, column.rest)


def without_columns(message: Message) -> Iterator[Sent]:
    """Leave out all but the first column."""
    if message.tag == b"T":
        yield Message(b"T", description(columns(message.body)[:1])).encoded()
    elif message.tag == b"D":
        yield Message(b"D", row(values(message.body)[:1])).encoded()
    else:
        yield message.encoded()


def without_rows(message: Message) -> Iterator[Sent]:
    """Leave out all rows."""
    if message.tag != b"D":
        yield message.encoded()


def seeded(seed: int) -> Callable[[], Behaviour]:
    """Say hostile texts, numbers and NULLs in a part of the values; the same ones for the same seed."""
    chance = random.Random(seed)  # noqa: S311 — no secret
    share = chance.choice((0.001, 0.005, 0.02, 0.1, 0.5))

    def alter(column: Column, value: Value) -> Value:
        if chance.random() > share:
            return value
        if column.type_oid in INTEGERS | NUMBERS:
            return chance.choice((*_BEYOND, None, value))
        if column.type_oid == BOOL:
            return chance.choice((b"t", b"f", None, b"x"))
        text = chance.choice(_TEXTS)
        return chance.choice((text, (value or b"") + text, text, chance.choice(_BEYOND), None))

    return partial(Results, alter)


def _parameters(number: int) -> bytes:
    return b"".join(
        Message(b"S", b"p%d\0x\0" % (number * _AT_ONCE + one)).encoded() for one in range(_AT_ONCE)
    )


_NOTICES = Message(b"N", b"SWARNING\0C01000\0M\x1b[2Jlook\0\0").encoded() * _AT_ONCE
_NOTIFICATIONS = Message(b"A", struct.pack("!i", 1) + b"channel\0payload\0").encoded() * _AT_ONCE
_ROWS = Message(b"D", row([b"1"])).encoded() * _AT_ONCE
_BREAKING: Mapping[str, Callable[[Message], Iterable[Sent]]] = {
    "silence": instead(Instead.SILENCE),
    "closed": instead(Instead.CLOSE),
    "cut off": cut,
    "length -1": instead(b"D\xff\xff\xff\xff", Instead.SILENCE),
    "length 3": instead(b"D\0\0\0\3", Instead.SILENCE),
    "length 2 GB": endless(lambda number: bytes(1 << 16) if number else b"D\x7f\xff\xff\xff"),
    "unknown message": instead(b"?\0\0\0\4", Instead.SILENCE),
    "endless notices": endless(lambda _: _NOTICES),
    "endless parameters": endless(_parameters),
    "endless notifications": endless(lambda _: _NOTIFICATIONS),
    "endless zeros": endless(lambda _: bytes(1 << 16)),
}
PHASES = {"login": 0, "first answer": 1, "early": 6, "later": 20, "late": 40}
"""Names of moments, by the number of answers that are complete by then."""


def breaking() -> list[Case]:
    """Return what breaks the protocol, at each phase."""
    return [
        Case(f"{name}, {phase}", after(answers, act))
        for name, act in _BREAKING.items()
        for phase, answers in PHASES.items()
    ]


def telling() -> list[Case]:
    """Return what keeps the protocol and says what cannot be."""
    return [
        Case("endless rows", after(2, endless(lambda _: _ROWS, before=True), b"T")),
        Case("a million rows", after(1, repeated, b"D")),
        Case("values of 100 MB", partial(Results, large)),
        Case("version 99.99; rm -rf", partial(Results, version), may_end_well=True),
        Case("NULL everywhere", partial(Results, lambda _, __: None)),
        Case("empty everywhere", partial(Results, lambda _, value: value and b"")),
        Case("other types", partial(Results, describe=other_type)),
        Case("one column", lambda: without_columns),
        Case("no rows", lambda: without_rows),
        Case("errors without fields", after(1, error())),
        Case("errors of hostile text", after(1, error(b"SERROR", b"C\x1b[2J", b"M\x1b]0;\x07\xff{{1}}\n"))),
        Case("a restart, early", once(6), may_end_well=True),
        Case("a restart, later", once(20), may_end_well=True),
        *(Case(f"numbers: {which[:24].decode()}", partial(Results, beyond(which)), may_end_well=True)
          for which in _BEYOND),
    ]  # fmt: skip


def fuzzed(seeds: Iterable[int]) -> list[Case]:
    """Return hostile values here and there, by seeds."""
    return [Case(f"seed {seed}", seeded(seed), may_end_well=True) for seed in seeds]
