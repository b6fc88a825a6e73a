"""Which of equal elements a selection picks: the C++ library's algorithms on a list of places.

PyTorch leaves the choice among ties to its sorting routines, so the same routines decide here.
They work in Python and are meant for rows with ties only; values are compared by ``less``, a
function of two places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Less = Callable[[int, int], bool]

# Shorter ranges are left to one insertion sort at the end.
SHORT = 16


def nth_element(a: list[int], first: int, nth: int, last: int, less: Less) -> None:
    """Put the element of rank ``nth`` in its place, smaller ones before it (introselect)."""
    if first == last or nth == last:
        return
    depth = ((last - first).bit_length() - 1) * 2
    while last - first > 3:
        if depth == 0:
            _heap_select(a, first, nth + 1, last, less)
            a[first], a[nth] = a[nth], a[first]
            return
        depth -= 1
        cut = _partition(a, first, last, less)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insertion_sort(a, first, last, less)


def sort(a: list[int], first: int, last: int, less: Less) -> None:
    """Sort a range (introsort)."""
    if first == last:
        return
    _introsort(a, first, last, ((last - first).bit_length() - 1) * 2, less)
    if last - first > SHORT:
        _insertion_sort(a, first, first + SHORT, less)
        for i in range(first + SHORT, last):
            _insert(a, i, less)
    else:
        _insertion_sort(a, first, last, less)


def partial_sort(a: list[int], first: int, middle: int, last: int, less: Less) -> None:
    """Put the smallest elements, in order, before ``middle`` (heap select, heap sort)."""
    _heap_select(a, first, middle, last, less)
    _sort_heap(a, first, middle, less)


def _introsort(a: list[int], first: int, last: int, depth: int, less: Less) -> None:
    while last - first > SHORT:
        if depth == 0:
            partial_sort(a, first, last, last, less)
            return
        depth -= 1
        cut = _partition(a, first, last, less)
        _introsort(a, cut, last, depth, less)
        last = cut


def _partition(a: list[int], first: int, last: int, less: Less) -> int:
    """Split about the median of three, which moves to the front; where the upper part begins."""
    middle = first + (last - first) // 2
    _median_to_front(a, first, first + 1, middle, last - 1, less)
    pivot = a[first]
    low, high = first + 1, last
    while True:
        while less(a[low], pivot):
            low += 1
        high -= 1
        while less(pivot, a[high]):
            high -= 1
        if low >= high:
            return low
        a[low], a[high] = a[high], a[low]
        low += 1


def _median_to_front(a: list[int], to: int, i: int, j: int, k: int, less: Less) -> None:
    x, y, z = a[i], a[j], a[k]
    if less(x, y):
        at = j if less(y, z) else k if less(x, z) else i
    else:
        at = i if less(x, z) else k if less(y, z) else j
    a[to], a[at] = a[at], a[to]


def _insertion_sort(a: list[int], first: int, last: int, less: Less) -> None:
    for i in range(first + 1, last):
        if less(a[i], a[first]):
            a[first : i + 1] = [a[i], *a[first:i]]
        else:
            _insert(a, i, less)


def _insert(a: list[int], i: int, less: Less) -> None:
    value = a[i]
    while less(value, a[i - 1]):
        a[i] = a[i - 1]
        i -= 1
    a[i] = value


def _heap_select(a: list[int], first: int, middle: int, last: int, less: Less) -> None:
    size = middle - first
    for parent in range((size - 2) // 2, -1, -1):
        _sift(a, first, parent, size, a[first + parent], less)
    for i in range(middle, last):
        if less(a[i], a[first]):
            value, a[i] = a[i], a[first]
            _sift(a, first, 0, size, value, less)


def _sort_heap(a: list[int], first: int, last: int, less: Less) -> None:
    while last - first > 1:
        last -= 1
        value, a[last] = a[last], a[first]
        _sift(a, first, 0, last - first, value, less)


def _sift(a: list[int], first: int, hole: int, size: int, value: int, less: Less) -> None:
    """Put ``value`` into the heap from ``hole``: down to a leaf, then up to its place."""
    top = hole
    child = hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if less(a[first + child], a[first + child - 1]):
            child -= 1
        a[first + hole] = a[first + child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        a[first + hole] = a[first + child - 1]
        hole = child - 1
    parent = (hole - 1) // 2
    while hole > top and less(a[first + parent], value):
        a[first + hole] = a[first + parent]
        hole = parent
        parent = (hole - 1) // 2
    a[first + hole] = value


def quick_select(values: list[Any], k: int) -> int:
    """The place of the value of rank ``k``, as PyTorch's own quick select for kthvalue finds it."""
    a = list(range(len(values)))
    nan = [v != v for v in values]

    def greater(i: int, j: int) -> bool:
        return (nan[i] and not nan[j]) or values[i] > values[j]

    def swap(i: int, j: int) -> None:
        a[i], a[j] = a[j], a[i]

    low, high = 0, len(a) - 1
    while high > low:
        if high == low + 1:
            if greater(a[low], a[high]):
                swap(low, high)
            break
        swap(low + (high - low) // 2, low + 1)
        for i, j in ((low + 1, high), (low, high), (low + 1, low)):
            if greater(a[i], a[j]):
                swap(i, j)
        i, j = low + 1, high
        pivot = a[low]
        while True:
            i += 1
            while greater(pivot, a[i]):
                i += 1
            j -= 1
            while greater(a[j], pivot):
                j -= 1
            if j < i:
                break
            swap(i, j)
        swap(low, j)
        if j <= k:
            low = i
        if j >= k:
            high = j - 1
    return a[k]


def less_by(values: list[Any]) -> Less:
    """Places ordered by value, nan last."""
    nan = [v != v for v in values]
    if True in nan:
        return lambda i, j: (not nan[i] and nan[j]) or values[i] < values[j]
    return lambda i, j: values[i] < values[j]


def greater_by(values: list[Any]) -> Less:
    """Places ordered by value from the largest, nan first."""
    nan = [v != v for v in values]
    if True in nan:
        return lambda i, j: (nan[i] and not nan[j]) or values[i] > values[j]
    return lambda i, j: values[i] > values[j]
