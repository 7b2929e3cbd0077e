"""Terraform: an ``aws_db_parameter_group`` for Amazon RDS.

Sources: the documentation of Terraform's AWS provider; Terraform's language, "Strings and Templates".
"""

from __future__ import annotations

from pgdyno.model.plans.plan import Plan, PlanLine
from pgdyno.plan.formats._amazon import apply_method
from pgdyno.plan.formats._contract import Format, comments, setting_lines, summary
from pgdyno.plan.formats._expressible import encodable
from pgdyno.plan.formats._script import parameter, undo_of
from pgdyno.plan.formats._targets import Selection, select, target
from pgdyno.plan.formats.rds import PROVIDER
from pgdyno.postgres.server import Server

FORMAT = Format("terraform", "Terraform resource aws_db_parameter_group for Amazon RDS")
_INDENT = "  "
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BMP_END = 0xFFFF


def render(plan: Plan, server: Server) -> str:
    """Return the resource. Raises: SettingError for a setting that the server does not know."""
    selection = select(plan, server, target(PROVIDER.target))
    head = [
        f"pgdyno: {summary(selection.plan, server)}.",
        "Use: in the aws_db_instance, parameter_group_name = aws_db_parameter_group.pgdyno.name, then apply.",
        "Changes that need a restart wait for a reboot of the instance.",
        "Undo: name the former group in the aws_db_instance, apply, then delete this resource.",
        "Parameters not listed get the family's defaults: copy those that the present group changes.",
    ]
    parts = [
        (
            f'name_prefix = "pgdyno-"\nfamily      = "postgres{server.major}"\n'
            f"description = {quoted(f'planned by pgdyno for PostgreSQL {server.version}')}"
        ),
        *(_block(line, server, selection) for line in setting_lines(selection.plan)),
        "lifecycle {\n  create_before_destroy = true\n}",
    ]
    resource = 'resource "aws_db_parameter_group" "pgdyno" {\n' + _indented("\n\n".join(parts)) + "\n}"
    return "\n\n".join(filter(None, [comments(head), resource, comments(selection.left_out)])) + "\n"


def _block(line: PlanLine, server: Server, selection: Selection) -> str:
    one = parameter(line, server, PROVIDER)
    remarks = comments(selection.explain(line, undo_of(line, server, PROVIDER)), indent="")
    return (
        f"{remarks}\nparameter {{\n"
        f"  name         = {quoted(one.name)}\n"
        f"  value        = {quoted(one.value)}\n"
        f"  apply_method = {quoted(apply_method(one))}\n"
        "}"
    )


def quoted(text: str) -> str:
    """Quote a text so that Terraform does not expand templates in it.

    Raises: FormatError for a text that is not encodable in UTF-8, or contains a NUL.
    """
    escaped = "".join(map(_escaped, encodable(text, "HCL")))
    return '"' + escaped.replace("${", "$${").replace("%{", "%%{") + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    code = ord(character)
    return f"\\u{code:04x}" if code <= _BMP_END else f"\\U{code:08x}"


def _indented(text: str) -> str:
    return "\n".join(_INDENT + line if line else line for line in text.split("\n"))
