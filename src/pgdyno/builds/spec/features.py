"""Features that a build inherits from another installation, and its on-disk layout.

Not taken over: where it was installed, how it was compiled and linked, and what finds mistakes in it.

Source: configure --help of PostgreSQL 14 to 18.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_OPTION = re.compile(r"--(with|without|enable|disable)-([\w-]+)(?:=(.*))?", re.DOTALL)
_ENABLED = frozenset({"nls", "float8-byval"})
"""Of all that is enabled or disabled: languages of messages, and whether a float8 is stored as a value."""
_INTERPRETERS = {"PERL": "perl", "PYTHON": "python", "TCLSH": "tcl"}
"""Variables that choose the language that functions are run by, with its option: paths, but also features."""
_OF_THE_LINKER = frozenset({"gnu-ld", "template", "tclconfig"})  # found out by configure itself
_PLACES = frozenset({"includes", "libraries", "libs"})
_FOR_MISTAKES = frozenset(
    {"debug", "cassert", "dtrace", "tap-tests", "coverage", "depend", "profiling", "injection-points"}
)
_NOT_TAKEN: Mapping[str, str] = {
    "llvm": "without JIT: --with-llvm is not taken over, because JIT's code is made apart from the "
    "trained and verified program; jit=on then does nothing",
    "extra-version": "without --with-extra-version: this is another build than the package that it names",
}
_CALLED_NOW = {"--with-openssl": "--with-ssl=openssl"}  # since 14


@dataclass(frozen=True)
class Features:
    """Arguments of configure, each once; ``left_out``: sentences on features not inherited."""

    options: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, str]:
        """Every option by its name: ``yes``, ``no``, or its value; interpreters by their variables."""
        return dict(_valued(option) for option in self.options)


def take_over(arguments: Sequence[str]) -> Features:
    """Return the inherited arguments of another installation's configure, in order.

    Of arguments that are given twice, the last one counts, as it does for configure.
    """
    last = {_valued(argument)[0]: argument for argument in arguments}
    taken = [_CALLED_NOW.get(one, one) for name, one in last.items() if _is_feature(name, one)]
    languages = dict(_valued(one) for one in taken)
    return Features(
        tuple(
            one
            for one in taken
            if (variable := one.partition("=")[0]) not in _INTERPRETERS
            or languages.get(_INTERPRETERS[variable], "no") != "no"
        ),
        tuple(_left_out(last)),
    )


def _is_feature(name: str, argument: str) -> bool:
    found = _OPTION.fullmatch(argument)
    if found is None:
        return name in _INTERPRETERS
    if found[1] in {"enable", "disable"}:
        return name in _ENABLED
    return name not in _OF_THE_LINKER | _PLACES | _NOT_TAKEN.keys()


def _left_out(last: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for every feature that is not inherited."""
    given = {name: one for name, one in last.items() if _OPTION.fullmatch(one) and _valued(one)[1] != "no"}
    yield from (sentence for name, sentence in _NOT_TAKEN.items() if name in given)
    if places := [one for name, one in given.items() if name in _PLACES]:
        yield f"without {', '.join(places)}: libraries are taken from where this host has them"
    if for_mistakes := [one for name, one in given.items() if name in _FOR_MISTAKES]:
        yield f"without {', '.join(for_mistakes)}: not taken over, because they help to find mistakes"


def _valued(argument: str) -> tuple[str, str]:
    """Return the name and the value of an option or a variable; other arguments are their own name."""
    found = _OPTION.fullmatch(argument)
    if found is None:
        name, _, value = argument.partition("=")
        return name, value
    if found[1] in {"without", "disable"}:
        return found[2], "no"
    return found[2], "yes" if found[3] is None else found[3]
