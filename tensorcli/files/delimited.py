"""Tables of numbers as text: csv and tsv, with or without a line of column names."""

from __future__ import annotations

import csv
import io
from array import array
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from engine import dtypes, storage
from engine.modes import state
from tensorcli.files.arrays import plain_array_of, shared
from tensorcli.files.disk import CHUNK, replace, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.tensor import Tensor
    from tensorcli.files.disk import Input

# A cell of a number; longer ones are something else.
MOST_CELL = 10_000
ROWS = 4096


class NotANumber(ValueError):
    """A cell that the numbers tried so far cannot hold."""

    def __init__(self, cell: str) -> None:
        super().__init__(cell)
        self.cell = cell


def _integer(cell: str) -> int:
    value = int(cell) if len(cell) < 25 and "_" not in cell and cell.isascii() else None
    if value is None or not -(1 << 63) <= value < 1 << 63:
        raise ValueError(cell)
    return value


def _real(cell: str) -> float:
    """A number; an empty cell is a missing one."""
    if not cell or cell.isspace():
        return float("nan")
    if "_" in cell or not cell.isascii():
        raise ValueError(cell)
    return float(cell)


def _complex(cell: str) -> complex:
    if "_" in cell or not cell.isascii():
        raise ValueError(cell)
    return complex(cell.strip()) if cell.strip() else complex("nan")


# What is tried, in this order: (reader of a cell, type code of the array, parts per number).
LADDER: tuple[tuple[Callable[[str], Any], str, int], ...] = (
    (_integer, "q", 1),
    (_real, "d", 1),
    (_complex, "d", 2),
)


def load(source: Input, delimiter: str) -> Tensor:
    """A matrix of int64 where all cells are integers, else of the default dtype (or complex).

    A first line that is no numbers names the columns and is passed over; empty lines are too. An
    empty cell is NaN. Raises ValueError with the line of what is no number, and for rows of
    unequal length.
    """
    for reader, code, parts in LADDER:
        try:
            return _table(source, delimiter, reader, code, parts)
        except NotANumber as error:
            if reader is LADDER[-1][0]:
                raise ValueError(f"{source.name}, {error}") from None
    raise AssertionError("the last of the ladder returns or raises")


def _table(
    source: Input, delimiter: str, reader: Callable[[str], Any], code: str, parts: int
) -> Tensor:
    numbers = array(code)
    width = 0
    asked = 0
    for line, cells in _rows(source, delimiter):
        try:
            row = [reader(cell) for cell in cells]
        except ValueError:
            if width == 0 and not any(cell.strip() and _is_number(cell) for cell in cells):
                width = -len(cells)
                continue
            wrong = next((cell for cell in cells if not _is_number(cell)), cells[0])
            raise NotANumber(f"line {line}: {shown(wrong, 40)} is no number") from None
        if width not in (0, len(row), -len(row)):
            raise ValueError(
                f"{source.name}, line {line}: {len(row)} cells, {abs(width)} in the lines before"
            )
        width = len(row)
        numbers.extend(row if parts == 1 else [x for z in row for x in (z.real, z.imag)])
        if len(numbers) * 8 > asked:
            asked += CHUNK
            storage.ask(CHUNK)
    return _matrix(numbers, code, parts, abs(width))


def _is_number(cell: str) -> bool:
    """Whether a cell is a number, or none at all."""
    try:
        _complex(cell)
    except ValueError:
        return False
    return True


def _rows(source: Input, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    source.file.seek(0)
    text = io.TextIOWrapper(source.file, encoding="utf-8-sig", newline="")
    try:
        reader = csv.reader(_lines(text, source.name), delimiter=delimiter)
        for cells in reader:
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield reader.line_num, cells
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{source.name} is no table of text: {error}") from None
    finally:
        # The file stays open for the next attempt.
        text.detach()


def _lines(text: IO[str], name: str) -> Iterator[str]:
    """Lines; their memory is asked for where they are long."""
    while line := text.readline(CHUNK):
        if len(line) == CHUNK:
            raise ValueError(f"{name}: a line of more than {CHUNK} characters")
        if len(line) > 1 << 16:
            storage.ask(len(line) * 64)
        yield line


def _matrix(numbers: Any, code: str, parts: int, width: int) -> Tensor:
    flat = np.frombuffer(numbers, np.dtype(code)) if numbers else np.empty(0, np.dtype(code))
    if parts == 2:
        flat = flat.view(np.complex128)
    rows = len(flat) // width if width else 0
    found = shared(flat.reshape(rows, width).copy())
    if code == "q" and numbers:
        return found
    dtype = state.default_dtype
    return found.to(dtypes.complex_of(dtype) if parts == 2 else dtype)


def save(value: object, path: str, delimiter: str) -> None:
    """A matrix row by row, a vector as one column, a number as one cell.

    Each number has the fewest digits that read back as the same. Raises ValueError for more than
    two dimensions.
    """
    numbers = plain_array_of(value, "a table of text")
    if numbers.ndim > 2:
        raise ValueError(f"a table has rows and columns, the tensor has {numbers.ndim} dimensions")
    matrix = numbers.reshape(-1, 1) if numbers.ndim < 2 else numbers
    if matrix.dtype.kind == "b":
        matrix = matrix.astype(np.int8)

    def write(file: IO[bytes]) -> None:
        for start in range(0, len(matrix), ROWS):
            rows = matrix[start : start + ROWS]
            storage.ask(rows.size * 64)
            lines = [delimiter.join(map(_cell, row)) + "\n" for row in rows]
            file.write("".join(lines).encode("ascii"))

    replace(path, write)


def _cell(number: Any) -> str:
    return str(number).strip("()")
