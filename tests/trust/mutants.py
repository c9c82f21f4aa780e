"""Changes of Python source in one place: what ``run_mutation.py`` draws from.

Left alone are types, decorators, docstrings, assertions, and the words of errors and of f-strings.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATOR: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Div,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_NONE = ast.Constant(None)


@dataclass(frozen=True)
class Mutant:
    """One change: ``before`` at a line of a file, a statement or an expression, is ``after`` instead."""

    path: str
    line: int
    before: str
    after: str
    start: int  # bytes from the beginning of the file
    end: int

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.before.split())} → {self.after}"


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """Return all changes of a module, in the order of the text."""
    offsets = [0]
    for text in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(text))
    found = []
    for node, changed in _changes(ast.parse(source)):
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        after = ast.unparse(ast.fix_missing_locations(changed))
        if isinstance(node, ast.expr) and not isinstance(changed, ast.Constant):
            after = f"({after})"
        found.append(Mutant(path, node.lineno, source[start:end].decode(), after, start, end))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.after))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST]]:
    open_nodes: list[ast.AST] = [tree]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom) or _is_alias(node, tree):
            continue
        if isinstance(node, ast.Raise):
            yield node, ast.Pass()
            continue
        if isinstance(node, ast.expr):
            yield from ((node, changed) for changed in _of_expression(node))
        elif isinstance(node, ast.stmt):
            yield from ((node, changed) for changed in _of_statement(node))
        open_nodes.extend(_below(node))


def _below(node: ast.AST) -> Iterator[ast.AST]:
    """Return the parts of a node that may change."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "keywords") and not isinstance(node, ast.Call):
            continue
        parts = value if isinstance(value, list) else [value]
        yield from (part for part in parts if isinstance(part, ast.AST) and not _is_text(part))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_alias(node: ast.AST, tree: ast.Module) -> bool:
    """Say whether a statement names a type, or lists the names of a module."""
    if not (isinstance(node, ast.Assign) and node in tree.body):
        return False
    return isinstance(node.value, ast.Subscript | ast.BinOp) or ast.unparse(node.targets[0]).startswith("__")


def _of_expression(node: ast.expr) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                changed = copy.deepcopy(node)
                changed.ops[i] = _COMPARE[type(op)]()
                yield changed
        case ast.BinOp(left, op, right) if type(op) in _OPERATOR:
            yield ast.BinOp(left, _OPERATOR[type(op)](), right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield operand
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(str() as value):
            yield ast.Constant(f"XX{value}XX")
        case ast.Call():
            for i in range(len(node.args)):
                if isinstance(node.args[i], ast.Constant) and ast.unparse(node.args[i]) == "None":
                    continue
                call = copy.deepcopy(node)
                call.args[i] = _NONE
                yield call
            for i in range(len(node.keywords)):
                call = copy.deepcopy(node)
                del call.keywords[i]
                yield call


def _of_statement(node: ast.stmt) -> Iterator[ast.AST]:
    match node:
        case ast.Assign(targets, value) if not isinstance(value, ast.Constant):
            yield ast.Assign(targets, _NONE)
        case ast.AugAssign(target, op, value):
            if type(op) in _OPERATOR:
                yield ast.AugAssign(target, _OPERATOR[type(op)](), value)
            yield ast.Assign([target], value)
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(_NONE)
        case ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
