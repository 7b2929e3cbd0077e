"""Replaces a statement's constants by parameters, as pg_stat_statements does.

Statements are read token by token. Column numbers (``ORDER BY 2``) and type modifiers (``numeric(10, 2)``)
are not constants.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_COMMENT = ""
_ESCAPED = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_MARKS = re.compile(r"''|'[ \t\r\f\v]*+\n\s*+'")  # a doubled quote, or a string continued on another line
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MOST_UNICODE = 0x10FFFF
_SPECIAL = re.compile(r'(["\\])')


for _ in range(4):  # arbitrary: comments can be nested, but rarely are
    _COMMENT = rf"/\*(?:[^*/]++|\*(?!/)|/(?!\*){_COMMENT and f'|{_COMMENT}'})*+\*/"


TOKEN = re.compile(
    rf"(?P<space>\s++|--[^\n]*+|{_COMMENT}|/\*.*+)"
    r"""
    |(?P<text>[eE]'(?:[^'\\]|\\.|'')*+'
        |(?:[uU]&|[bBxXnN])?'(?:[^']|'')*+'(?:[ \t\r\f\v]*+\n\s*+'(?:[^']|'')*+')*+
        |\$\$.*?(?:\$\$|\Z)|\$(?P<tag>[^\W\d]\w{0,62})\$.*?(?:\$(?P=tag)\$|\Z))
    |(?P<name>(?:[uU]&)?"(?:[^"]|"")*+")
    |(?P<parameter>\$\d{1,5})
    |(?P<number>0[xX][0-9a-fA-F_]++|0[oO][0-7_]++|0[bB][01_]++|(?:\d[\d_]*+(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?)
    |(?P<word>[^\W\d][\w$]*+)
    |(?P<other>::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS_AS_VALUES = frozenset({"true", "false", "null"})
_TIMES = frozenset({"date", "time", "timetz", "timestamp", "timestamptz", "interval"})
_TWO_WORDS = frozenset({
    ("double", "precision"), ("character", "varying"), ("char", "varying"), ("bit", "varying"),
})  # fmt: skip
"""Names of types."""
_SIZED = frozenset({
    "varchar", "char", "character", "varying", "bpchar", "nchar", "numeric", "decimal", "dec", "float", "bit",
    "time", "timestamp", "timestamptz", "timetz", "interval", "second",
})  # fmt: skip
"""Words of types with modifiers in parentheses after them."""
_BEFORE_A_VALUE = frozenset({
    "select", "where", "and", "or", "not", "in", "like", "between", "when", "then", "else", "by", "limit",
    "offset", "returning", "distinct", "all", "from", "set", "on", "having", "case", "values", "return", "is",
    "ilike", "to", "for", "placing", "both", "leading", "trailing", "symmetric", "asymmetric", "using",
    "default", "variadic",
})  # fmt: skip
"""Reserved words before a value, of which a minus sign after them is a part."""
_QUERIES = frozenset({"select", "insert", "update", "delete", "merge", "with", "values", "table"})
_NO_TYPES = (
    _BEFORE_A_VALUE
    | _QUERIES
    | {
        "escape", "zone", "first", "next", "rows", "range", "groups", "value", "key", "path", "passing",
        "ref", "content", "document", "version", "overlaps", "similar",
    }
)  # fmt: skip
"""Words before a value. Any other name before a string is a type: DATE '2026-01-01'."""
_AFTER_PLACES = frozenset({
    "limit", "offset", "fetch", "for", "having", "union", "except", "intersect", "window", "rows", "range",
    "groups", "returning", "where", "from", "order",
})  # fmt: skip
"""Words that end a list with column numbers."""
NAMING = frozenset({"nextval", "currval", "setval", "set_config", "current_setting"})
"""Functions that take the name of a sequence or a setting as a string, first."""
NAME = re.compile(r"'\"?[^\W\d][\w.$\"]*'")
_EXTRACT = "pg_catalog.extract"  # the function behind EXTRACT (field FROM value)
_FIELD = re.compile(r"(\bextract\s*\(\s*)(\w+)(?=\s+from\b)", re.IGNORECASE)
_GLUED = re.compile(r"([^\W\d]\w*)(\$\d{1,5})")
_VARIABLE = re.compile(r":(\w+)")
_WITHIN_NAMES = re.compile(r'[\w$"]')


@dataclass(frozen=True, slots=True)
class Parameterised:
    """A statement without constants and comments.

    ``values`` are the values of parameters that were constants, by number; NULL is None. ``types`` are the
    types that PostgreSQL assigns to numbers among them.
    """

    sql: str
    values: dict[int, str | None]
    types: dict[int, str]


@dataclass(slots=True)
class _Token:
    kind: str
    text: str

    @property
    def word(self) -> str:
        """The word in lower case; empty for other tokens."""
        return self.text.lower() if self.kind == "word" else ""


def statements_of(sql: str) -> list[str]:
    """Return the statements of a text, which semicolons separate."""
    return [statement for _, statement in divided(sql)]


def divided(sql: str) -> list[tuple[int, str]]:
    """Return the statements of a text, each with its offset; comments alone are not statements."""
    parts, at = list[tuple[int, str]](), -1
    for found in (*TOKEN.finditer(sql), None):
        is_end = found is None or (found.lastgroup == "other" and found[0] == ";")
        if is_end and at >= 0:
            parts.append((at, sql[at : len(sql) if found is None else found.start()].strip()))
        if is_end:
            at = -1
        elif found is not None and found.lastgroup != "space" and at < 0:
            at = found.start()
    return parts


def with_variables(sql: str, names: Collection[str]) -> tuple[str | None, list[str]]:
    """Return a statement with parameters for ``:name``, and the names in order of the parameters' numbers.

    For a name within quotation marks, where no parameter is possible, return None and that name.
    """
    written, found_names = [], list[str]()
    tokens = [_Token(_kind(found), found[0]) for found in TOKEN.finditer(sql)]
    for one, following in zip(tokens, [*tokens[1:], _Token("", "")], strict=True):
        inside = [name for name in _VARIABLE.findall(one.text) if name in names]
        if one.kind in {"text", "name"} and inside:
            return None, inside[:1]
        if one.text == ":" and following.kind in {"word", "number"} and following.text in names:
            if following.text not in found_names:
                found_names.append(following.text)
            written.append(f"${found_names.index(following.text) + 1}")
            following.text = ""
        else:
            written.append(one.text)
    return "".join(written), found_names


def parameterised(sql: str, *, keeps_names: bool = True, keeps_comments: bool = False) -> Parameterised:
    """Return a statement with parameters for its constants, numbered after its existing parameters.

    PostgreSQL takes only strings in some places: ``date '2026-01-01'`` becomes ``$1::date``, and ``extract($1
    FROM a)``, as the statistics have it, ``pg_catalog.extract($1, a)``. ``keeps_names``: such fields stay; so
    do names of sequences and settings, which functions take as strings.
    """
    tokens = list(_tokens(sql if keeps_names else _FIELD.sub(r"\1'\2'", sql)))
    highest = max((int(one.text[1:]) for one in tokens if one.kind == "parameter"), default=0)
    writer = _Writer(highest, keeps_names, keeps_comments)
    for one in tokens:
        writer.take(one)
    return Parameterised("".join(writer.out).strip(), writer.values, writer.types)


def _tokens(sql: str) -> Iterator[_Token]:
    for found in TOKEN.finditer(sql):
        one = _Token(_kind(found), found[0])
        glued = _GLUED.fullmatch(one.word) if "$" in one.word else None
        if glued is not None and glued[1] in _NO_TYPES | _TIMES:  # pg_stat_statements: date'2026-01-01'
            yield _Token("word", glued[1])
            yield _Token("parameter", glued[2])
        else:
            yield one


def in_place_of_parameters(sql: str, texts: Mapping[int, str]) -> str:
    """Return a statement with ``texts`` in place of parameters, by their numbers."""
    return "".join(
        texts.get(int(found[0][1:]), found[0]) if found.lastgroup == "parameter" else found[0]
        for found in TOKEN.finditer(sql)
    )


def _kind(found: re.Match[str]) -> str:
    return "text" if found.lastgroup == "tag" or found["text"] is not None else found.lastgroup or "other"


@dataclass(slots=True)
class _Writer:
    """Writes a statement token by token; ``out`` ends with the previous token."""

    highest: int
    keeps_names: bool
    keeps_comments: bool
    out: list[str] = field(default_factory=list)
    values: dict[int, str | None] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    _written: list[_Token] = field(default_factory=list)  # without spaces
    _places: list[int] = field(default_factory=list)  # index in ``out`` of each written token
    _lists: list[str] = field(default_factory=lambda: [""])  # by depth: "by", "size" or ""

    def take(self, one: _Token) -> None:
        """Write a token, or a parameter if it is a constant."""
        if one.kind == "space":
            self.out.append(one.text if one.text.isspace() or self.keeps_comments else " ")
            return
        self._follow(one)
        if one.kind == "parameter":
            cast = self._taken_type()
            self._write(one, f"{one.text}{cast}")
        elif self._is_constant(one):
            self._parameter(one)
        elif one.word == "from" and self._is_after_field():
            self.out[self._places[-3]] = _EXTRACT
            self._write(one, ",")
        else:
            self._write(one, one.text)

    def _write(self, one: _Token, text: str) -> None:
        self._places.append(len(self.out))
        is_next_to_one = "parameter" in {one.kind, self._before().kind} and _WITHIN_NAMES.match(text[:1])
        is_glued = is_next_to_one and self.out and _WITHIN_NAMES.match(self.out[-1][-1:])
        self._written.append(one)
        self.out.append(f" {text}" if is_glued else text)

    def _before(self, back: int = 1) -> _Token:
        return self._written[-back] if len(self._written) >= back else _Token("", "")

    def _follow(self, one: _Token) -> None:
        """Track lists with column numbers, and type modifiers."""
        if one.text == "(" and one.kind == "other":
            self._lists.append(self._opened())
        elif one.text == ")" and one.kind == "other":
            if len(self._lists) > 1:
                self._lists.pop()
        elif one.word == "by" and self._before().word in {"order", "group"}:
            self._lists[-1] = "by"
        elif one.word in _AFTER_PLACES and self._lists[-1] == "by":
            self._lists[-1] = ""

    def _opened(self) -> str:
        """Return the kind of the parenthesized list that opens here: "by", "size" or ""."""
        name = self._before()
        if name.word == "on" and self._before(2).word == "distinct":
            return "by"
        if name.kind in {"word", "name"}:
            before = self._before(2)
            if name.word in _SIZED or before.text == "::" or before.word == "as":
                return "size"
        return ""

    def _is_constant(self, one: _Token) -> bool:
        before = self._before()
        if one.kind not in {"text", "number"} and one.word not in _WORDS_AS_VALUES:
            return False
        if one.kind == "word":
            is_test = before.word == "is" or (before.word == "not" and self._before(2).word == "is")
            return not is_test and before.text != "." and before.word not in {"as", "on"}
        if one.kind == "text":
            return before.word not in {"as", "uescape"} and not self._is_name(one)
        is_place = self._lists[-1] == "by" and (before.word == "by" or before.text in {",", "("})
        return self._lists[-1] != "size" and not (is_place and one.text.isdecimal())

    def _is_name(self, one: _Token) -> bool:
        """Whether a string is the name of a sequence or a setting."""
        is_first = self._before().text == "(" and self._before(2).word in NAMING
        return self.keeps_names and is_first and NAME.fullmatch(one.text) is not None

    def _is_after_field(self) -> bool:
        """Whether a parameter for the field of EXTRACT precedes."""
        is_first = self._before().kind == "parameter" and self._before(2).text == "("
        return is_first and self._before(3).word == "extract" and self._before(4).text != "."

    def _parameter(self, one: _Token) -> None:
        self.highest += 1
        sign, cast = self._taken_sign(one), self._taken_type()
        if one.kind == "number":
            self.types[self.highest] = _type_of(one.text)
        self.values[self.highest] = _value(one, sign)
        self._write(_Token("parameter", ""), f"${self.highest}{cast}")

    def _taken_sign(self, one: _Token) -> str:
        """Return and remove a number's minus sign, unless it is an operator between two values."""
        before, further = self._before(), self._before(2)
        is_sign = further.word in _BEFORE_A_VALUE or (
            further.kind in {"", "other"} and further.text not in {")", "]"}
        )
        if one.kind != "number" or before.text != "-" or before.kind != "other" or not is_sign:
            return ""
        self._remove_previous()
        return "-"

    def _taken_type(self) -> str:
        """Return the cast for the type's name that precedes a string, and remove the name."""
        size = self._type_size()
        if not size:
            return ""
        pieces = self.out[self._places[-size] :]
        for _ in range(size):
            self._remove_previous()
        return "::" + "".join(one if '"' in one else one.lower() for one in pieces).strip()

    def _type_size(self) -> int:
        """Return the number of tokens of the type's name that precedes a string; 0 without a name."""
        if not self._written or (self._written[0].word not in _QUERIES and self._written[0].text != "("):
            return 0
        size = 0
        if [self._before(back).word for back in (2, 1)] == ["time", "zone"]:
            size = 3 if self._before(3).word in {"with", "without"} else 0
        if self._before(size + 1).text == ")":
            size += 2
            while self._before(size).kind == "number" or self._before(size).text == ",":
                size += 1
            if self._before(size).text != "(" or self._before(size - 1).kind != "number":
                return 0
        name = self._before(size + 1)
        if name.kind not in {"word", "name"} or name.word in _NO_TYPES:
            return 0
        size += 2 if (self._before(size + 2).word, name.word) in _TWO_WORDS else 1
        while self._before(size + 1).text == "." and self._before(size + 2).kind in {"word", "name"}:
            size += 2
        before = self._before(size + 1)
        is_after_name = before.kind in {"word", "name"} and before.word not in _NO_TYPES
        return 0 if is_after_name or before.text in {"::", "."} else size

    def _remove_previous(self) -> None:
        self._written.pop()
        del self.out[self._places.pop() :]


def _type_of(number: str) -> str:
    """Return the type that PostgreSQL assigns to a numeric constant."""
    digits = number.replace("_", "")
    if not digits.isdecimal():
        return "numeric" if digits[:2].lower() not in {"0x", "0o", "0b"} else "bigint"
    size = int(digits) if len(digits) < 20 else 1 << 64
    return "integer" if size < 1 << 31 else "bigint" if size < 1 << 63 else "numeric"


def _value(one: _Token, sign: str) -> str | None:
    """Return a constant as a parameter's text; None is NULL."""
    if one.kind == "word":
        return None if one.word == "null" else one.word
    if one.kind == "number":
        return sign + one.text.replace("_", "")
    return unquoted_text(one.text)


def quoted_text(text: str | None) -> str:
    """Return a string constant for a text; None is NULL.

    A text with a backslash becomes an escape string, independent of standard_conforming_strings.
    """
    if text is None:
        return "NULL"
    doubled = text.replace("'", "''")
    return f"E'{doubled.replace(chr(92), chr(92) * 2)}'" if "\\" in doubled else f"'{doubled}'"


def array_text(elements: Iterable[str]) -> str:
    """Return the text of an array with these elements."""
    return f"{{{','.join(_element(one) for one in elements)}}}"


def unquoted_text(text: str) -> str:
    """Return the value of a string constant."""
    return "".join(_parts(text))


def _element(text: str) -> str:
    return '"' + _SPECIAL.sub(r"\\\1", text) + '"'


def _parts(text: str) -> Iterator[str]:
    if text.startswith("$"):
        quote = text[: text.index("$", 1) + 1]
        yield text[len(quote) : -len(quote)]
        return
    prefix = text[: text.index("'")].lower()
    inner = text[len(prefix) + 1 : -1]
    if prefix in {"b", "x"}:
        yield prefix
    if prefix == "e":
        yield _paired(_ESCAPED.sub(_unescaped, inner.replace("''", "'")))
    else:
        yield _MARKS.sub(lambda found: "'" if found[0] == "''" else "", inner)


def _paired(text: str) -> str:
    """Return a text with surrogate pairs replaced by their characters."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescaped(found: re.Match[str]) -> str:
    octal, hexadecimal, short, long, letter = found.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(octal, 8) & 0xFF if octal else int(hexadecimal or short or long, 16)
    return chr(code) if 0 < code <= _MOST_UNICODE else ""
