"""Features that a build inherits from another installation, including its on-disk format.

Not inherited: installation paths, compiler and linker options, debugging and test options.

Source: configure --help of PostgreSQL 14 to 18.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_OPTION = re.compile(r"--(with|without|enable|disable)-([\w-]+)(?:=(.*))?", re.DOTALL)
_ENABLED = frozenset({"nls", "float8-byval"})
"""The only inherited --enable options: translated messages, and pass-by-value float8."""
_INTERPRETERS = {"PERL": "perl", "PYTHON": "python", "TCLSH": "tcl"}
"""Variables that select a procedural language's interpreter, with the option: paths, but also features."""
_OF_THE_LINKER = frozenset({"gnu-ld", "template", "tclconfig"})  # configure detects these
_PLACES = frozenset({"includes", "libraries", "libs"})
_FOR_DEBUGGING = frozenset(
    {"debug", "cassert", "dtrace", "tap-tests", "coverage", "depend", "profiling", "injection-points"}
)
_NOT_TAKEN: Mapping[str, str] = {
    "llvm": "without JIT: --with-llvm is not inherited, because JIT code is compiled separately from the "
    "trained and verified program; jit=on has no effect",
    "extra-version": "without --with-extra-version: it would name a package that this build is not from",
}
_RENAMED = {"--with-openssl": "--with-ssl=openssl"}  # since 14


@dataclass(frozen=True)
class Features:
    """Arguments of configure, each once; ``left_out``: sentences on features that are not inherited."""

    options: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, str]:
        """``yes``, ``no`` or the value of every option, by its name; interpreters by their variables."""
        return dict(_valued(option) for option in self.options)


def take_over(arguments: Sequence[str]) -> Features:
    """Return the inherited arguments among those of another installation's configure, in order.

    The last of repeated arguments counts, as in configure.
    """
    last = {_valued(argument)[0]: argument for argument in arguments}
    taken = [_RENAMED.get(one, one) for name, one in last.items() if _is_feature(name, one)]
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
    """Yield sentences on the features that are not inherited."""
    given = {name: one for name, one in last.items() if _OPTION.fullmatch(one) and _valued(one)[1] != "no"}
    yield from (sentence for name, sentence in _NOT_TAKEN.items() if name in given)
    if places := [one for name, one in given.items() if name in _PLACES]:
        yield f"without {', '.join(places)}: this host's library directories are used"
    if for_debugging := [one for name, one in given.items() if name in _FOR_DEBUGGING]:
        yield f"without {', '.join(for_debugging)}: debugging options are not inherited"


def _valued(argument: str) -> tuple[str, str]:
    """Return the name and value of an option or variable; any other argument is a name without value."""
    found = _OPTION.fullmatch(argument)
    if found is None:
        name, _, value = argument.partition("=")
        return name, value
    if found[1] in {"without", "disable"}:
        return found[2], "no"
    return found[2], "yes" if found[3] is None else found[3]
