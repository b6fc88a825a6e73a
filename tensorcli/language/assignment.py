"""Targets of assignments: names, unpacking, attributes, elements; deletion; x += y."""

from __future__ import annotations

import ast
from itertools import islice
from typing import TYPE_CHECKING, Any

from tensorcli.language import costs, limits
from tensorcli.language.attributes import attribute, set_attribute, type_name
from tensorcli.language.compiling import (
    GLOBALS,
    PARENT,
    Context,
    compiles_statement,
    expression,
    refuse_at,
    refuse_construct,
)
from tensorcli.language.errors import attach
from tensorcli.language.nesting import check_key
from tensorcli.language.operators import BINARY, SAFE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorcli.language.compiling import Action, Frame, Store


def store(node: ast.expr, context: Context) -> Store:
    """The closure that assigns a value to a target."""
    if isinstance(node, ast.Name):
        return store_name(node.id, context)
    if isinstance(node, (ast.Tuple, ast.List)):
        return store_parts(node, context)
    if isinstance(node, ast.Attribute):
        return store_attribute(node, context)
    if isinstance(node, ast.Subscript):
        return store_element(node, context)
    if isinstance(node, ast.Starred):
        refuse_at(node, context, "starred assignment target must be in a list or tuple")
    refuse_construct(node, context)


def store_name(key: str, context: Context) -> Store:
    hops = context.hops(key)
    if hops == 0 or context.at_module_level:

        def own(frame: Frame, value: Any) -> None:
            frame[key] = value

        return own

    def outer(frame: Frame, value: Any) -> None:
        frame_of(frame, hops)[key] = value

    return outer


def frame_of(frame: Frame, hops: int | None) -> Frame:
    """The frame that many hops up; None is the module's, seen from an inner one."""
    if hops is None:
        globals_: Frame = frame[GLOBALS]
        return globals_
    for _ in range(hops):
        frame = frame[PARENT]
    return frame


def store_parts(node: ast.Tuple | ast.List, context: Context) -> Store:
    parts = node.elts
    stars = [i for i, part in enumerate(parts) if isinstance(part, ast.Starred)]
    if len(stars) > 1:
        refuse_at(node, context, "multiple starred expressions in assignment")
    stores = [store(p.value if isinstance(p, ast.Starred) else p, context) for p in parts]
    source = context.source
    star = stars[0] if stars else None
    count = len(stores)

    def unpack(frame: Frame, value: Any) -> None:
        try:
            if type(value) in (tuple, list) and star is None and len(value) == count:
                items: Sequence[Any] = value
            elif star is None:
                items = exactly(value, count)
            else:
                items = at_least(value, star, count - 1 - star)
        except Exception as exc:
            attach(exc, source, node)
            raise
        for save, item in zip(stores, items, strict=True):
            save(frame, item)

    return unpack


def _start(value: Any) -> Any:
    kind = type(value)
    if not hasattr(kind, "__iter__") and not hasattr(kind, "__getitem__"):
        raise TypeError(f"cannot unpack non-iterable {type_name(value)} object")
    return iter(value)


def exactly(value: Any, count: int) -> Sequence[Any]:
    """The elements of an iterable that must have `count` of them."""
    items = list(islice(_start(value), count + 1))
    if len(items) > count:
        raise ValueError(f"too many values to unpack (expected {count})")
    if len(items) < count:
        raise ValueError(f"not enough values to unpack (expected {count}, got {len(items)})")
    return items


def at_least(value: Any, before: int, after: int) -> Sequence[Any]:
    """The elements of an iterable, those of the starred target as one list."""
    items = costs.list_of(_start(value))
    if len(items) < before + after:
        raise ValueError(
            f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
        )
    end = len(items) - after
    return [*items[:before], items[before:end], *items[end:]]


def store_attribute(node: ast.Attribute, context: Context) -> Store:
    target = expression(node.value, context)
    key, source = node.attr, context.source

    def run(frame: Frame, value: Any) -> None:
        owner = target(frame)
        try:
            set_attribute(owner, key, value)
        except Exception as exc:
            attach(exc, source, node, (node.value,), (owner,))
            raise

    return run


def set_element(owner: Any, key: Any, value: Any) -> None:
    """`owner[key] = value`."""
    kind = type(owner)
    if kind is dict:
        check_key(key)
    elif kind is list and type(key) is slice:
        if hasattr(value, "__len__"):
            limits.meter().charge_bytes(8 * len(value))
        elif hasattr(value, "__iter__"):
            value = costs.list_of(value)
    elif not hasattr(kind, "__setitem__"):
        raise TypeError(f"'{type_name(owner)}' object does not support item assignment")
    owner[key] = value


def store_element(node: ast.Subscript, context: Context) -> Store:
    # The statement around a lone `x[i] = v`: whoever explains an error wants to see the value.
    whole: ast.Assign | None = getattr(node, "statement", None)
    nodes = (node.value, node.slice) if whole is None else (node.value, node.slice, whole.value)
    target, index = expression(node.value, context), expression(node.slice, context)
    source = context.source

    def run(frame: Frame, value: Any) -> None:
        owner = target(frame)
        key = index(frame)
        try:
            set_element(owner, key, value)
        except Exception as exc:
            attach(exc, source, node, nodes, (owner, key, value))
            raise

    return run


@compiles_statement(ast.Assign)
def assign(node: ast.Assign, context: Context) -> Action:
    value = expression(node.value, context)
    if len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Name) and (
            context.at_module_level or context.hops(target.id) == 0
        ):
            key = target.id

            def assign_name(frame: Frame) -> None:
                frame[key] = value(frame)

            return assign_name
        if isinstance(target, ast.Subscript):
            target.statement = node  # type: ignore[attr-defined]  # nodes take attributes
        save = store(target, context)
        return lambda frame: save(frame, value(frame))
    stores = [store(target, context) for target in node.targets]

    def run(frame: Frame) -> None:
        result = value(frame)
        for save in stores:
            save(frame, result)

    return run


@compiles_statement(ast.AnnAssign)
def annotated(node: ast.AnnAssign, context: Context) -> Action:
    if node.value is None:
        return lambda frame: None
    value, save = expression(node.value, context), store(node.target, context)
    return lambda frame: save(frame, value(frame))


@compiles_statement(ast.AugAssign)
def augmented(node: ast.AugAssign, context: Context) -> Action:
    target = node.target
    if isinstance(target, ast.Name):
        return augmented_name(node, target, context)
    if isinstance(target, ast.Attribute):
        return augmented_attribute(node, target, context)
    return augmented_element(node, target, context)


def augmented_name(node: ast.AugAssign, target: ast.Name, context: Context) -> Action:
    load = expression(ast.copy_location(ast.Name(target.id, ast.Load()), target), context)
    value, save = expression(node.value, context), store(target, context)
    _, _, operation, guard = BINARY[type(node.op)]
    apply = operation
    source = context.source

    def settle() -> None:
        nonlocal apply
        apply = operation

    if context.advice is not None:
        apply = context.advice.operation(node, context, operation, settle)

    def run(frame: Frame) -> None:
        a = load(frame)
        b = value(frame)
        try:
            if guard is not None and type(a) not in SAFE and type(b) not in SAFE:
                guard(a, b)
            result = apply(a, b)
        except Exception as exc:
            attach(exc, source, node, (target, node.value), (a, b))
            raise
        save(frame, result)

    return run


def augmented_attribute(node: ast.AugAssign, target: ast.Attribute, context: Context) -> Action:
    owner_of, value = expression(target.value, context), expression(node.value, context)
    _, _, apply, guard = BINARY[type(node.op)]
    key, source = target.attr, context.source

    def run(frame: Frame) -> None:
        owner = owner_of(frame)
        try:
            a = attribute(owner, key)
        except Exception as exc:
            attach(exc, source, target, (target.value,), (owner,))
            raise
        b = value(frame)
        try:
            if guard is not None and type(a) not in SAFE and type(b) not in SAFE:
                guard(a, b)
            set_attribute(owner, key, apply(a, b))
        except Exception as exc:
            attach(exc, source, node, (target, node.value), (a, b))
            raise

    return run


def augmented_element(node: ast.AugAssign, target: ast.Subscript, context: Context) -> Action:
    owner_of, index = expression(target.value, context), expression(target.slice, context)
    value = expression(node.value, context)
    _, _, operation, guard = BINARY[type(node.op)]
    apply = operation
    source = context.source

    def settle() -> None:
        nonlocal apply
        apply = operation

    if context.advice is not None:
        apply = context.advice.operation(node, context, operation, settle)

    def run(frame: Frame) -> None:
        owner = owner_of(frame)
        key = index(frame)
        try:
            if type(owner) is dict:
                check_key(key)
            a = owner[key]
        except Exception as exc:
            attach(exc, source, target, (target.value, target.slice), (owner, key))
            raise
        b = value(frame)
        try:
            if guard is not None and type(a) not in SAFE and type(b) not in SAFE:
                guard(a, b)
            set_element(owner, key, apply(a, b))
        except Exception as exc:
            attach(exc, source, node, (target, node.value), (a, b))
            raise

    return run


@compiles_statement(ast.Delete)
def delete(node: ast.Delete, context: Context) -> Action:
    return delete_all(node.targets, context)


def delete_all(nodes: Sequence[ast.expr], context: Context) -> Action:
    actions = [delete_target(node, context) for node in nodes]

    def run(frame: Frame) -> None:
        for action in actions:
            action(frame)

    return run


def delete_target(node: ast.expr, context: Context) -> Action:
    if isinstance(node, (ast.Tuple, ast.List)):
        return delete_all(node.elts, context)
    if isinstance(node, ast.Name):
        return delete_name(node, context)
    if isinstance(node, ast.Subscript):
        return delete_element(node, context)
    source = context.source
    if not isinstance(node, ast.Attribute):
        refuse_construct(node, context)
    target, key = expression(node.value, context), node.attr

    def refuse(frame: Frame) -> None:
        owner = target(frame)
        exc = AttributeError(f"attribute '{key}' of '{type_name(owner)}' objects is not deletable")
        attach(exc, source, node)
        raise exc

    return refuse


def delete_name(node: ast.Name, context: Context) -> Action:
    key, source = node.id, context.source
    hops = context.hops(key)
    here = context.at_module_level

    def run(frame: Frame) -> None:
        try:
            del (frame if here else frame_of(frame, hops))[key]
        except KeyError:
            exc: NameError
            if here or hops is None:
                exc = NameError(f"name '{key}' is not defined")
            else:
                exc = UnboundLocalError(
                    f"cannot access local variable '{key}' where it is not associated with a value"
                )
            attach(exc, source, node)
            raise exc from None

    return run


def delete_element(node: ast.Subscript, context: Context) -> Action:
    target, index = expression(node.value, context), expression(node.slice, context)
    source = context.source

    def run(frame: Frame) -> None:
        owner = target(frame)
        key = index(frame)
        try:
            if not hasattr(type(owner), "__delitem__"):
                name = type_name(owner)
                raise TypeError(f"'{name}' object doesn't support item deletion")
            if type(owner) is dict:
                check_key(key)
            del owner[key]
        except Exception as exc:
            attach(exc, source, node, (node.value, node.slice), (owner, key))
            raise

    return run
