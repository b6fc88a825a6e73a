"""Random programs of nested statements and scopes end as Python ends them."""

from __future__ import annotations

import random

import pytest

from tensorcli.language.limits import LimitReached
from tests.test_language_python import check

# Not e: that is torch.e.
NAMES = "abcdk"


class Writer:
    """Writes a random program; every loop is short and every name may be unbound."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.functions = 0
        self.lines: list[str] = []
        self.scope: list[str] = []

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def name(self) -> str:
        return self.random.choice(NAMES)

    def expression(self, depth: int = 0) -> str:
        if depth > 2 or self.random.random() < 0.35:
            return self.pick(self.name(), self.name(), str(self.random.randint(-2, 3)), "'x'",
                             "[1, 2]", "(1, 2)", "None", "True")  # fmt: skip
        e = [self.expression(depth + 1) for _ in range(3)]
        n = self.name()
        return self.pick(
            f"({e[0]} {self.pick('+', '-', '*', '//', '%', '/', '&', '|')} {e[1]})",
            f"({e[0]} {self.pick('<', '==', '!=', '>=', 'in', 'not in')} {e[1]})",
            f"({e[0]} {self.pick('and', 'or')} {e[1]})", f"(not {e[0]})", f"(-{e[0]})",
            f"({e[0]} if {e[1]} else {e[2]})", f"[{e[0]}, {e[1]}]", f"({e[0]}, *{e[1]})",
            f"{{{e[0]}: {e[1]}}}", f"{e[0]}[{e[1]}]", f"len({e[0]})", f"str({e[0]})",
            f"[{e[0]} for {n} in {e[1]}]", f"[{e[0]} for {n} in {e[1]} if {e[2]}]",
            f"sum({e[0]} for {n} in [1, 2, 3])", f"(lambda {n}: {e[0]})({e[1]})",
            f"(lambda {n}={e[0]}: {e[1]})()", f"({n} := {e[0]})", f"f'{{{n}}}'",
            f"f{self.random.randint(0, 2)}({e[0]})", f"list(map(lambda {n}: {e[0]}, [1, 2]))",
        )  # fmt: skip

    def block(self, depth: int, loop: bool, inside: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(depth, loop, inside)
        return ["    " + line for line in lines]

    def statement(self, depth: int, loop: bool, inside: bool) -> list[str]:
        n, m, e = self.name(), self.name(), self.expression()
        simple = [
            f"{n} = {e}", f"{n} = {e}", f"{n}, {m} = {e}", f"{n}, *{m} = {e}", f"{n} = {m} = {e}",
            f"{n} {self.pick('+', '-', '*', '|')}= {e}", f"print({e})", f"del {n}", "pass",
            f"{n} = [{e}]; {n}[0] = {self.expression()}", f"assert {e}, {self.expression()}",
            f"raise {self.pick('ValueError', 'KeyError', 'TypeError')}({e})",
        ]  # fmt: skip
        if loop:
            simple += ["break", "continue"]
        if inside:
            simple += [f"return {e}", "return"]
        if depth > 2 or self.random.random() < 0.5:
            return [self.random.choice(simple)]
        kind = self.random.randrange(5)
        if kind == 0:
            return [
                f"if {e}:", *self.block(depth + 1, loop, inside),
                "else:", *self.block(depth + 1, loop, inside),
            ]  # fmt: skip
        if kind == 1:
            lines = [f"for {n} in {self.pick('range(3)', '[1, 2]', e)}:"]
            lines += self.block(depth + 1, True, inside)
            return lines + (["else:", *self.block(depth + 1, loop, inside)] if m < n else [])
        if kind == 2:
            return self.attempt(depth, loop, inside)
        if kind == 3:
            self.functions += 1
            lines = [f"def f{self.random.randint(0, 2)}({self.pick(n, f'{n}=1', f'*{n}')}):"]
            return lines + self.block(depth + 1, False, True)
        return [f"try: {n} = f{self.random.randint(0, 2)}({e})", "except Exception as err:",
                "    print(type(err).__name__, err)"]  # fmt: skip

    def attempt(self, depth: int, loop: bool, inside: bool) -> list[str]:
        caught = self.pick("Exception", "(ValueError, TypeError)", "NameError", "LookupError")
        lines = ["try:", *self.block(depth + 1, loop, inside)]
        lines += [f"except {caught} as err:", "    print(type(err).__name__)"]
        lines += self.block(depth + 1, loop, inside)
        if self.random.random() < 0.4:
            lines += ["finally:", *self.block(depth + 1, loop, inside)]
        return lines

    def program(self) -> str:
        lines = [f"{n} = {v}" for n, v in zip(NAMES[:3], ("1", "[1, 2]", "'t'"), strict=True)]
        for _ in range(8):
            lines += self.statement(0, False, False)
        return "\n".join(lines)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_random_programs() -> None:
    tried = 0
    for seed in range(600):
        text = Writer(seed).program()
        try:
            compile(text, "<program>", "exec")
        except SyntaxError:
            continue
        tried += 1
        try:
            check(text)
        except LimitReached:
            # Endless recursion: an exception of the language in Python, a limit here.
            continue
        except AssertionError as exc:
            raise AssertionError(f"seed {seed}\n{text}\n\n{exc}") from None
    assert tried > 300
