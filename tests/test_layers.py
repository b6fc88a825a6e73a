"""Holds the layers: a module imports only what stands above it in the list below.

Lazy imports (inside a function) are held to the same list, unless they are named with a reason.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Outermost last. A name stands for the module or package of that name; the longest match counts.
# Modules inside one entry may import each other.
LAYERS = [
    "engine.errors",
    "engine.exposed",
    "engine.hooks",
    "engine.trees",
    "engine.dtypes",
    "engine.indices",
    "engine.selection",
    "engine.summing",
    "engine.foreign",
    "engine.layout",
    "engine.matrices",
    "engine.formats",
    "engine.device",
    "engine.backends",
    "engine.modes",
    "engine.scalars",
    "engine.random",
    "engine.draws",
    "engine.storage",
    "engine.lazy",
    "engine.tensor",
    "engine.recording",
    "engine.printing",
    "engine.parameter_types",
    "engine.tape",
    "engine.backward",
    "engine.levels",
    "engine.autocasting",
    "engine.signature",
    "engine.written_forms",
    "engine.plain_calls",
    "engine.registry",
    "engine.overload_texts",
    "engine.overloads",
    "engine.method_complaints",
    "engine.numeric_limits",
    "engine.return_types",
    "engine.kinds",
    "engine.operators",
    "engine.optimising",
    "engine.literals",
    "engine.ops",
    "engine.autograd",
    "engine.namespace",
    "engine",
    "tensorcli",
    "tensorcli.diagnostics",
    "tensorcli.terminal_pictures",
    "tensorcli.environment",
    "tensorcli.exit_status",
    "tensorcli.options",
    "tensorcli.settings",
    "tensorcli.files",
    "tensorcli.results",
    "tensorcli.findings",
    "tensorcli.value_results",
    "tensorcli.language",
    "tensorcli.explain",
    "tensorcli.session",
    "tensorcli.tiers",
    "tensorcli.examples",
    "tensorcli.observing",
    "tensorcli.reference",
    "tensorcli.commands",
    "tensorcli.render",
    "tensorcli.watchdog",
    "tensorcli.execution",
    "tensorcli.ops_command",
    "tensorcli.check_command",
    "tensorcli.precision_command",
    "tensorcli.repl",
    "tensorcli.entry",
    "tensorcli.cli",
    "tensorcli.__main__",
]

# (importer, imported): why the order is broken there. Every entry must still be needed.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("engine.device", "engine.backends"): "cupy is asked for devices when somebody names cuda",
    ("tensorcli.entry", "tensorcli.cli"): "what the quick parser does not know goes to typer",
}

# Packages that are not for every process: where they may be imported, and only inside a function
# unless the importing module is itself loaded only on demand.
ONLY_IN = {
    "cupy": {"engine.backends": "when a cuda device is named"},
    "ml_dtypes": {"engine": "when a bfloat16 or float8 value is made"},
    "scipy": {"engine": "when a special function is called"},
    "safetensors": {"tensorcli.files": "when such a file is read or written"},
    "rich": {"tensorcli.render.rich": "the one rendering that needs it"},
    "pygments": {"tensorcli.repl": "highlighting of the prompt"},
    "prompt_toolkit": {"tensorcli.repl": "the prompt"},
    "typer": {"tensorcli.cli": "the full command line"},
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Every product module with its tree."""
    for package in ("engine", "tensorcli"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield name, ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(tree: ast.Module) -> Iterator[tuple[str, int, bool]]:
    """(module, line, at top level) of the imports that run: not those for type checkers only."""

    def walk(node: ast.AST, top: bool) -> Iterator[tuple[str, int, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    yield from walk(ast.Module([other], []), top)
            elif isinstance(child, ast.Import):
                for alias in child.names:
                    yield alias.name, child.lineno, top
            elif isinstance(child, ast.ImportFrom):
                for alias in child.names:
                    yield f"{child.module}.{alias.name}", child.lineno, top
            else:
                inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from walk(child, top and not inner)

    yield from walk(tree, True)


def entry_of(name: str) -> str | None:
    """The list's entry that a dotted name belongs to."""
    return max((entry for entry in LAYERS if is_within(name, entry)), key=len, default=None)


def is_within(name: str, package: str) -> bool:
    """Whether the dotted name is the package or lies in it."""
    return name == package or name.startswith(package + ".")


MODULES = dict(sources())


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_upward(name: str) -> None:
    own = entry_of(name)
    assert own is not None
    assert own == name or own not in ("engine", "tensorcli"), f"{name} has no place in LAYERS"
    wrong = [
        f"line {line}: {target}"
        for target, line, _ in imports(MODULES[name])
        if target.partition(".")[0] in ("engine", "tensorcli")
        and (entry := entry_of(target)) is not None
        and LAYERS.index(entry) > LAYERS.index(own)
        and not any(is_within(name, a) and is_within(target, b) for a, b in EXCEPTIONS)
    ]
    assert not wrong, f"{name} ({own}) imports from below it: {wrong}"


@pytest.mark.parametrize("name", MODULES)
def test_heavy_packages_stay_in_their_place(name: str) -> None:
    for target, line, top in imports(MODULES[name]):
        allowed = ONLY_IN.get(target.partition(".")[0])
        if allowed is None:
            continue
        places = [place for place in allowed if is_within(name, place)]
        assert places, f"{name} line {line} imports {target}"
        assert not (top and "engine" in places), (
            f"{name} line {line}: {target} belongs in a function"
        )


def test_exceptions_are_still_needed() -> None:
    used = {
        pair
        for pair in EXCEPTIONS
        for name, tree in MODULES.items()
        if is_within(name, pair[0])
        and any(is_within(target, pair[1]) for target, _, _ in imports(tree))
    }
    assert used == set(EXCEPTIONS)


def test_engine_knows_nothing_of_tensorcli_nor_of_a_terminal() -> None:
    for name, tree in MODULES.items():
        if is_within(name, "engine"):
            known = {target.partition(".")[0] for target, _, _ in imports(tree)}
            assert not known & {"tensorcli", "rich", "typer", "prompt_toolkit", "pygments"}, name


def test_product_never_imports_torch() -> None:
    for name, tree in MODULES.items():
        assert "torch" not in {target.partition(".")[0] for target, _, _ in imports(tree)}, name


def test_only_the_standard_library_and_declared_packages() -> None:
    known = set(sys.stdlib_module_names) | set(ONLY_IN) | {"engine", "tensorcli", "numpy"}
    for name, tree in MODULES.items():
        strange = {target.partition(".")[0] for target, _, _ in imports(tree)} - known
        assert not strange, f"{name} imports {strange}: not a declared dependency"
