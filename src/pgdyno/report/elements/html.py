"""Self-contained HTML files: no network, no scripts, no fonts. Pure.

The Content Security Policy of a page forbids everything except its style sheet, identified by its hash.
Markup in names, settings or log lines therefore cannot load or run anything. Control characters in them are
replaced, because people also read pages with a pager.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pgdyno.base import numbers
from pgdyno.base.text import lower_first, printable, sentence

_STYLE = "page.css"


def render(template: str, **values: object) -> str:
    """Return a whole page; the template gets ``values``, the style sheet and its hash."""
    environment = _environment()
    # The hash is of the style sheet as it is in the page. It is a file of this package.
    style = Markup(printable(environment.get_template(_STYLE).render()))  # noqa: S704
    return environment.get_template(template).render(style=style, style_hash=_csp_hash(style), **values)


def _csp_hash(style: str) -> str:
    """Return the style sheet's hash in the notation of CSP level 3 §2.3.1."""
    return f"sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pgdyno.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_without_controls,
    )
    environment.filters.update(
        share=numbers.share, sentence=sentence, breakable=_breakable, lower_first=lower_first
    )
    return environment


def _without_controls(value: object) -> object:
    if isinstance(value, Markup):
        return Markup(printable(str(value)))  # noqa: S704 — characters are only removed or replaced
    return printable(value) if isinstance(value, str) else value


def _breakable(name: str) -> Markup:
    """Allow line breaks inside long names and paths, after their separators."""
    text = str(escape(name))
    for separator in "_/.":  # characters that no escape sequence contains
        text = text.replace(separator, f"{separator}<wbr>")
    return Markup(text)  # noqa: S704 — escaped above
