"""YAML with a remark above every setting, and every value a string in double quotes.

Programs that read these files follow YAML 1.1, in which a bare ``on`` is true and ``15:00`` a number.
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

from pgdyno.plan.formats._comments import WIDTH, comments, joined, wrapped
from pgdyno.plan.formats._expressible import encodable, refusal

_LANGUAGE = "YAML"
_TEXT = "tag:yaml.org,2002:str"
_RESOLVER = VersionedResolver(version="1.1")
_INDENT = 2
_UNBROKEN = 1 << 16  # columns: values are never folded


@dataclass(frozen=True)
class Entry:
    """One setting with the remark above it."""

    name: str
    value: str
    remarks: tuple[str, ...]


def document(head: Iterable[str], content: object, tail: Iterable[str] = ()) -> str:
    """Return a YAML document between remarks."""
    yaml = YAML()
    yaml.width = _UNBROKEN
    yaml.indent(mapping=_INDENT, sequence=2 * _INDENT, offset=_INDENT)
    text = io.StringIO()
    yaml.dump(content, text)
    body = dedent(text.getvalue()).rstrip("\n")  # lists are indented, but not the outermost
    return joined(comments(head), body, comments(tail))


def below(path: Sequence[str], entries: Iterable[Entry]) -> object:
    """Return settings as a mapping that lies below the keys of ``path``."""
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
    """Return a YAML string that stays a string, whatever its text.

    Raises: FormatError for a text that cannot be written in UTF-8, or with a NUL in it.
    """
    scalar: str = DoubleQuotedScalarString(encodable(text, _LANGUAGE))
    return scalar


def verbatim(text: str) -> TaggedScalar:
    """Return a text of several lines that Ansible does not take for a template.

    Raises: FormatError for a text that Ansible has no way to read.
    """
    # A block has no escapes, and Ansible's reader takes none that begins with a tab.
    is_block = text[:1].strip() and all(line.isprintable() for line in text.split("\n"))
    return TaggedScalar(value=_readable(text), style="|" if is_block else '"', tag="!unsafe")


def untemplated(text: str) -> TaggedScalar:
    """Return a text of one line that Ansible does not take for a template.

    Raises: FormatError for a text that Ansible has no way to read.
    """
    return TaggedScalar(value=_readable(text), style='"', tag="!unsafe")


def _readable(text: str) -> str:
    """Return a text that Ansible reads as one below its tag: there, even a quoted ``on`` is a Boolean."""
    if _RESOLVER.resolve(ScalarNode, text, (True, False)) != _TEXT:
        raise refusal(text, "a playbook", "Ansible reads it as something else than a text")
    return encodable(text, _LANGUAGE)
