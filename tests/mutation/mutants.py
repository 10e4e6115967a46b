"""Mutants of a module: its code with one small mistake each, of the kinds that people make.

What tells people something and decides nothing is left alone: docstrings, texts, the arguments of what is raised,
`__str__` and `__repr__`, annotations, decorators, assertions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitOr,
}
_NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "ceil": "int",
    "minimum": "maximum",
    "maximum": "minimum",
    "next_plus": "next_minus",
    "next_minus": "next_plus",
    "ROUND_CEILING": "ROUND_FLOOR",
    "ROUND_FLOOR": "ROUND_CEILING",
    "ROUND_HALF_EVEN": "ROUND_FLOOR",
}
_REMOVABLE = (ast.Raise, ast.AugAssign, ast.Break, ast.Continue, ast.Delete)
_UNTOUCHED = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom, ast.expr_context, ast.operator, ast.cmpop)
_UNTOUCHED_FIELDS = {"annotation", "returns", "decorator_list", "exc", "cause"}
_FOR_PEOPLE = ("__str__", "__repr__")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: in which function, in which line of it, what stood there and what stands there now."""

    module: str
    where: str
    before: str
    after: str
    code: CodeType

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names it, wherever its line moves to."""
        return self.module, self.where, self.before, self.after


@dataclass(frozen=True, slots=True)
class _Place:
    """A node, how to put another one there, and what people call the place."""

    node: ast.AST
    owner: ast.AST
    field: str
    index: int | None
    where: str
    statement: ast.stmt

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.index] = node


def mutants_of(module: str, source: str, filename: str) -> Iterator[Mutant]:
    """Return all mutants, compiled. Equal mistakes in equal lines of one function are told apart by a number."""
    tree = ast.parse(source)
    seen: dict[tuple[str, str, str], int] = {}
    for place in list(_places(tree, "", tree.body[0])):
        for other in _variants(place):
            before = _line(place.statement)
            place.put(ast.fix_missing_locations(ast.copy_location(other, place.node)))
            after = _line(other if isinstance(other, ast.stmt) else place.statement)
            code = compile(tree, filename, "exec")
            place.put(place.node)
            if before == after:
                continue
            count = seen[place.where, before, after] = seen.get((place.where, before, after), 0) + 1
            yield Mutant(module, place.where, before, after + (f"  # place {count}" if count > 1 else ""), code)


def _line(statement: ast.stmt) -> str:
    """Return a statement in one line; of one that has others in it, what stands before the colon."""
    lines = [line for line in ast.unparse(statement).splitlines() if not line.startswith("@")]
    return lines[0]


def _places(node: ast.AST, where: str, statement: ast.stmt) -> Iterator[_Place]:
    for field, value in ast.iter_fields(node):
        if field in _UNTOUCHED_FIELDS:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or isinstance(child, _UNTOUCHED):
                continue
            inside, its_statement = where, statement
            if isinstance(child, ast.stmt):
                its_statement = child
            if isinstance(child, _SCOPES):
                if child.name in _FOR_PEOPLE:
                    continue
                inside = f"{where}.{child.name}".lstrip(".")
            yield _Place(child, node, field, index, inside, its_statement)
            yield from _places(child, inside, its_statement)


def _variants(place: _Place) -> Iterator[ast.AST]:
    node = place.node
    if _is_removable(place):
        yield ast.Pass()
    if place.field in ("test", "ifs") and not _has_own_opposite(node):
        assert isinstance(node, ast.expr)
        yield ast.UnaryOp(ast.Not(), node)
    match node:
        case ast.Compare():
            yield from _compared_otherwise(node)
        case ast.BinOp() if place.where or not isinstance(node.op, ast.BitOr):  # outside of functions it joins types
            yield ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
            if isinstance(node.op, ast.BitOr):
                yield from (node.left, node.right)
        case ast.AugAssign():
            yield ast.AugAssign(node.target, _OPERATORS[type(node.op)](), node.value)
        case ast.BoolOp():
            yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
            yield from _without_one(node)
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant(value=value):
            yield from map(ast.Constant, _other_values(value))
        case ast.Name(id=name) if name in _NAMES:
            yield ast.Name(_NAMES[name], node.ctx)
        case ast.Attribute(attr=name) if name in _NAMES:
            yield ast.Attribute(node.value, _NAMES[name], node.ctx)


def _compared_otherwise(node: ast.Compare) -> Iterator[ast.Compare]:
    for index, operator in enumerate(node.ops):
        for kind in _COMPARISONS[type(operator)]:
            yield ast.Compare(node.left, [*node.ops[:index], kind(), *node.ops[index + 1 :]], node.comparators)


def _without_one(node: ast.BoolOp) -> Iterator[ast.expr]:
    for left_out in range(len(node.values)):
        rest = [value for index, value in enumerate(node.values) if index != left_out]
        yield ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]


def _other_values(value: object) -> list[bool | int | float | bytes]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1]
    return [value + b"!"] if isinstance(value, bytes) else []


def _is_removable(place: _Place) -> bool:
    node = place.node
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant | ast.Yield | ast.YieldFrom)
    if isinstance(node, ast.Assign):
        return not any(isinstance(each, ast.Name) for target in node.targets for each in _targets(target))
    if isinstance(node, ast.Return):  # the last one of a function is what it is for
        return not isinstance(place.owner, _SCOPES)
    return isinstance(node, _REMOVABLE)


def _targets(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple) else [target]


def _has_own_opposite(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare | ast.UnaryOp | ast.Constant)
