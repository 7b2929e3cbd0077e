"""YAML with a comment above every setting, and every value a double-quoted string.

The programs that read these files follow YAML 1.1: an unquoted ``on`` is true and ``15:00`` is a number.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import dedent

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, TaggedScalar
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from pgdyno.plan.formats._contract import WIDTH, comments, joined, wrapped
from pgdyno.plan.formats._expressible import encodable, refusal

_LANGUAGE = "YAML"
_TEXT = "tag:yaml.org,2002:str"
_RESOLVER = VersionedResolver(version="1.1")
_INDENT = 2
_UNBROKEN = 1 << 16  # columns: values are never folded


@dataclass(frozen=True)
class Entry:
    """One setting with the remarks above it."""

    name: str
    value: str
    remarks: tuple[str, ...]


def document(head: Iterable[str], content: object, tail: Iterable[str] = ()) -> str:
    """Return a YAML document with comments before and after it."""
    yaml = YAML()
    yaml.width = _UNBROKEN
    yaml.indent(mapping=_INDENT, sequence=2 * _INDENT, offset=_INDENT)
    text = io.StringIO()
    yaml.dump(content, text)
    body = dedent(text.getvalue()).rstrip("\n")  # lists are indented, but not the outermost
    return joined(comments(head), body, comments(tail))


def below(path: Sequence[str], entries: Iterable[Entry]) -> object:
    """Return settings as a mapping nested below the keys of ``path``."""
    content: object = _settings(entries, indent=_INDENT * len(path))
    for key in reversed(path):
        content = {key: content}
    return content


def _settings(entries: Iterable[Entry], *, indent: int) -> CommentedMap:
    settings = CommentedMap()
    for entry in entries:
        lines = [line for remark in entry.remarks for line in wrapped(remark, WIDTH - indent - 2)]
        first = not settings
        settings[entry.name] = quoted(entry.value)
        above = "\n".join(lines if first else ["", *lines])
        settings.yaml_set_comment_before_after_key(entry.name, before=above, indent=indent)
    return settings


def quoted(text: str) -> str:
    """Return a double-quoted YAML string.

    Raises: FormatError for a text that is not encodable in UTF-8, or contains a NUL.
    """
    scalar: str = DoubleQuotedScalarString(encodable(text, _LANGUAGE))
    return scalar


def verbatim(text: str) -> TaggedScalar:
    """Return a multi-line text that Ansible does not treat as a template.

    Raises: FormatError for a text that Ansible cannot read as a string.
    """
    # A block scalar has no escapes, and Ansible's reader rejects one that begins with a tab.
    is_block = text[:1].strip() and all(line.isprintable() for line in text.split("\n"))
    return TaggedScalar(value=_readable(text), style="|" if is_block else '"', tag="!unsafe")


def untemplated(text: str) -> TaggedScalar:
    """Return a single-line text that Ansible does not treat as a template.

    Raises: FormatError for a text that Ansible cannot read as a string.
    """
    return TaggedScalar(value=_readable(text), style='"', tag="!unsafe")


def _readable(text: str) -> str:
    """Return ``text`` if Ansible reads it as a string: with the tag, even a quoted ``on`` is a Boolean."""
    if _RESOLVER.resolve(ScalarNode, text, (True, False)) != _TEXT:
        raise refusal(text, "a playbook", "Ansible does not read it as a string")
    return encodable(text, _LANGUAGE)
