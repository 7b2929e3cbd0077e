"""Habits that keep pgdyno safe, checked in the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.source import PACKAGE, ROOT, Module, modules


def test_no_subprocess_goes_through_a_shell() -> None:
    wrong = [
        f"{module.place}:{node.lineno} passes shell=True: pass a list of arguments"
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "shell"
    ]
    assert not wrong, "\n".join(wrong)


def test_exceptions_are_never_caught_blindly() -> None:
    wrong = [
        f"{module.place}:{node.lineno} catches everything: name the exception"
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.ExceptHandler)
        if node.type is None
        or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
    ]
    assert not wrong, "\n".join(wrong)


def test_assertions_are_not_used_to_check_input() -> None:
    wrong = [
        f"{module.place}:{node.lineno} asserts without saying why it must hold"
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Assert)
        if "# noqa: S101 — " not in module.path.read_text().splitlines()[node.lineno - 1]
    ]
    assert not wrong, "\n".join(wrong)


_PYTHON = re.compile(r"(sys\.executable|[\"']python3[\"'])[^\n]{0,20}")
_TAKES_NO_MODULES_FROM_HERE = re.compile(
    r"sys\.executable(, [\"']-[IP][\"']|\} -[IP] )|[\"']python3[\"'], [\"']-I[\"']"
)
_STARTS_NO_PYTHON = {
    "remote/runner.py": "the arguments of start_command, which has -I, for the python of this machine",
    "builds/needs/prerequisites.py": "the name of a package",
}


def test_no_python_takes_modules_from_the_working_directory() -> None:
    """With -m, -c and a program on its input it would, whoever's directory that is; -I and -P forbid it."""
    wrong = [
        f"{module.place}: {found[0]}…: start it with -I, or with -P where the caller's packages are needed"
        for module in modules()
        if module.place not in _STARTS_NO_PYTHON
        for found in _PYTHON.finditer(module.path.read_text())
        if not _TAKES_NO_MODULES_FROM_HERE.match(found[0])
    ]
    assert not wrong, "\n".join(wrong)


_WRAPS = re.compile(r"\b(\w*account\w*|caller\(\)|self\.reader)\.command\(|\b(wrap|run_as)\(")
_STARTS = {"subprocess.run", "subprocess.Popen", "subprocess.check_call", "subprocess.check_output"}
_AS_THE_CALLER = ("host/tracing/perf.py", "controlled")
"""perf records as the caller, in the caller's own environment."""


def test_what_runs_as_another_account_has_an_environment_of_its_own() -> None:
    """Other processes of that account can read it in /proc: of root's it is given a few variables."""
    wrong = [
        f"{module.place}:{call.lineno} hands our environment to another account: env=account.environment()"
        for module in modules()
        for top, call in _starts_wrapped(module)
        if (module.place, top) != _AS_THE_CALLER and not _has_own_environment(call)
    ]
    assert not wrong, "\n".join(wrong)


def test_what_runs_as_another_account_has_a_session_of_its_own() -> None:
    """In ours it could type commands into our terminal (TIOCSTI), which the shell there runs as us."""
    wrong = [
        f"{module.place}:{call.lineno} lets another account reach our terminal: start_new_session=True"
        for module in modules()
        for _, call in _starts_wrapped(module)
        if not _has_own_session(call)
    ]
    assert not wrong, "\n".join(wrong)


def test_that_rule_finds_what_inherits_an_environment() -> None:
    direct = "def f(account):\n    subprocess.run(account.command(['id']){})\n"
    by_name = "def f(account):\n    command = account.command(['id'])\n    subprocess.Popen(command{})\n"
    for text in (direct, by_name):
        for given, is_own in (
            ("", False),
            (", env={**os.environ}", False),
            (", env=account.environment()", True),
        ):
            module = Module(PACKAGE / "postgres/x.py", ast.parse(text.format(given)))
            ((name, call),) = _starts_wrapped(module)
            assert name == "f"
            assert _has_own_environment(call) is is_own, text.format(given)
            assert not _has_own_session(call)


def _starts_wrapped(module: Module) -> Iterator[tuple[str, ast.Call]]:
    """Yield the starts of programs in classes and functions that wrap a command for another account."""
    for top in module.tree.body:
        if isinstance(top, ast.ClassDef | ast.FunctionDef) and _WRAPS.search(ast.unparse(top)):
            for node in ast.walk(top):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in _STARTS:
                    yield top.name, node


def _has_own_environment(call: ast.Call) -> bool:
    given = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "env"]
    return bool(given) and "os.environ" not in given[0]


def _has_own_session(call: ast.Call) -> bool:
    return any(one.arg == "start_new_session" and ast.unparse(one.value) == "True" for one in call.keywords)


_WRITES = {
    "click.echo",
    "click.secho",
    "click.echo_via_pager",
    "print",
    "rich.print",
    "sys.stdout.write",
    "sys.stderr.write",
}
_WRITERS = {"rich.console.Console", "rich.print", "click.echo", "click.secho"}
_LAST_NAMES = {name.rpartition(".")[2] for name in _WRITES}
_MAY_WRITE = {
    "cli/output.py",
    "report/elements/terminal.py",
    "host/probing/_spin_program.py",
    "host/probing/_wakeup_program.py",
}
"""The output of commands; tables that ask a console for its width; programs whose output pgdyno reads."""


def test_texts_reach_a_terminal_through_one_file_alone() -> None:
    """Texts come from servers, hosts and files: what a terminal would act on is replaced in cli/output.py."""
    wrong = [
        f"{module.place}:{line} writes by {name}: use echo, print_wide, print_json or print_file of output.py"
        for module in modules()
        if module.place not in _MAY_WRITE
        for line, name in _writes(module)
    ]
    assert not wrong, "\n".join(wrong)


def test_that_rule_finds_what_it_forbids() -> None:
    for text in ("click.echo('x')", "partial(click.echo, err=True)", "print('x')", "sys.stderr.write('x')"):
        assert list(_writes(Module(PACKAGE / "cli/x.py", ast.parse(text)))), text
    late = "def f():\n    from rich.console import Console\n    Console().print('x')\n"
    assert list(_writes(Module(PACKAGE / "cli/x.py", ast.parse(late))))


def test_texts_of_the_driver_reach_a_terminal_through_one_file_alone() -> None:
    """Progress in text.rs has no texts."""
    writes = re.compile(r"\b(e?print(ln)?!|(stdout|stderr)\(\))")
    wrong = [
        f"{path.name} writes by {found[0]}: use say or print_lines of terminal.rs"
        for path in (ROOT / "driver/src").rglob("*.rs")
        if path.name not in {"terminal.rs", "text.rs"} and (found := writes.search(path.read_text()))
    ]
    assert not wrong, "\n".join(wrong)


def _writes(module: Module) -> Iterator[tuple[int, str]]:
    """Yield what writes to a terminal; imports for annotations alone do not."""
    for node in module.nodes:
        if (
            isinstance(node, ast.Attribute | ast.Name)
            and _last_name(node) in _LAST_NAMES
            and (name := ast.unparse(node)) in _WRITES
        ):
            yield node.lineno, name
    typed = {
        inner.lineno
        for node in module.nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
    }
    yield from ((line, name) for line, name in module.imports if name in _WRITERS and line not in typed)


def _last_name(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id
