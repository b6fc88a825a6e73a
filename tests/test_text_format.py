"""Formatting and texts of values: tensors, special types, widths; strict about what is refused."""

from __future__ import annotations

import random

import pytest

from engine.dtypes import float32
from engine.layout import Size
from tensorcli.language import limits
from tensorcli.language.text_format import check_spec, format_text, format_value, percent_format
from tensorcli.language.value_text import print_text, repr_of, text_of


@pytest.fixture(autouse=True)
def _plenty() -> None:
    limits.use(limits.Limits())


def test_engine_values_have_pytorchs_text() -> None:
    assert text_of(Size((2, 3))) == "torch.Size([2, 3])"
    assert repr_of([float32, Size(())]) == "[torch.float32, torch.Size([])]"
    assert format_value(float32) == "torch.float32"
    assert text_of(type(Size(()))) == "<class 'torch.Size'>"
    assert text_of(type(float32)) == "<class 'torch.dtype'>"


def test_specs_on_engine_values_are_refused_as_python_does() -> None:
    with pytest.raises(TypeError, match="unsupported format string passed to torch.dtype"):
        format_value(float32, ">10")
    with pytest.raises(TypeError, match="unsupported format string passed to list"):
        format_value([], ">10")


def test_functions_and_iterators_show_no_address() -> None:
    assert text_of(len) == "<built-in function len>"
    assert text_of(map(str, [])) == "<map object>"
    assert "0x" not in repr_of([iter([]), (i for i in ()), len, text_of])


def test_print_text() -> None:
    assert print_text((1, "a", [2.5])) == "1 a [2.5]\n"
    assert print_text((1, 2), ", ", "") == "1, 2"
    assert print_text((), None, None) == "\n"
    with pytest.raises(TypeError, match="sep must be None or a string, not int"):
        print_text((1,), 5)
    with pytest.raises(TypeError, match="end must be None or a string, not list"):
        print_text((1,), end=[])


@pytest.mark.parametrize(
    "spec", ["100000000000", ".100000000000f", "*<100000000000", "٩٩٩٩٩٩٩٩٩٩٩"]
)
def test_widths_are_held_to_the_text_limit(spec: str) -> None:
    with pytest.raises(limits.LimitReached):
        check_spec(spec)


def random_value(rng: random.Random, depth: int) -> object:
    kind = rng.randrange(12 if depth else 7)
    scalars: list[object] = [rng.randrange(-100, 100), rng.uniform(-5, 5), "a'b\n", True, None]
    if kind < 5:
        return scalars[kind]
    if kind == 5:
        return complex(rng.randrange(5), -0.0)
    if kind == 6:
        return {rng.randrange(3)}
    items = [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind < 9:
        return items
    if kind < 11:
        return tuple(items)
    return dict(enumerate(items))


def test_texts_of_containers_are_pythons() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        value = random_value(rng, 4)
        assert repr_of(value) == repr(value)
        assert text_of(value) == str(value)


def random_template(rng: random.Random, pieces: list[str]) -> str:
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 7)))


def outcome(run: object) -> tuple[object, ...]:
    try:
        return ("text", run())  # type: ignore[operator]
    except Exception as error:
        return (type(error), str(error))


def test_percent_is_pythons_on_random_templates() -> None:
    rng = random.Random(2)
    pieces = [
        "%",
        "d",
        "s",
        "5",
        ".",
        "2",
        "f",
        "*",
        "-",
        "(a)",
        "x",
        " ",
        "%%",
        "r",
        "c",
        "0",
        "l",
    ]
    values: list[object] = [
        1,
        2.5,
        "ab",
        (1, 2),
        (1.5,),
        {"a": 3},
        [1],
        (),
        None,
        ("a", 3, 2),
        True,
    ]
    for _ in range(20_000):
        template = random_template(rng, pieces)
        value = rng.choice(values)
        expected = outcome(lambda t=template, v=value: t % v)
        assert outcome(lambda t=template, v=value: percent_format(t, v)) == expected, (
            template,
            value,
        )


def test_format_is_pythons_on_random_templates() -> None:
    rng = random.Random(3)
    pieces = ["{", "}", "{}", "{0}", "{a}", "{:", "5", ".2f", "!r", "{{", ">", "x", "{1:{0}}", "1"]
    for _ in range(20_000):
        template = random_template(rng, pieces)
        args = tuple(rng.choice([1, 2.5, "ab", None]) for _ in range(rng.randrange(3)))
        expected = outcome(lambda t=template, a=args: t.format(*a, a=7))
        actual = outcome(lambda t=template, a=args: format_text(t, *a, a=7))
        if "reach into a value" not in actual[1]:
            assert actual == expected, (template, args)


def test_fields_do_not_reach_into_values() -> None:
    for template in ("{0.real}", "{0[0]}", "{a.b.c}", "{a[x]}"):
        with pytest.raises(ValueError, match="may not reach into a value"):
            format_text(template, 1, a=2)
