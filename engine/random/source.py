"""The random generator's state: MT19937 words as PyTorch's CPU generator draws them.

It must not know what is made of the words, nor of tensors.

The words come from CPython's own MT19937, `_random.Random`: its import costs 0.2 ms and
`getrandbits(32 * n)` is n words in order, 5 ns each. numpy.random's are 2 ns each, but its import
costs 17 to 22 ms, a fifth of a cold start: a generator moves there for good once it has drawn
as much as the import costs, or draws at length while somebody has imported it anyway.
"""

from __future__ import annotations

import os
import sys
from _random import Random
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import TensorRuntimeError, TensorTypeError, TensorValueError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import MT19937
    from numpy.typing import NDArray

DEFAULT_SEED = 67280421310721  # what torch.Generator() starts from
STATE_BYTES = 5056
BLOCK = 1 << 13  # words per block: what a block becomes stays in the second-level cache

_WORDS = 624
_WORD_MASK = 0xFFFFFFFF
_SEED_MASK = 0xFFFFFFFFFFFFFFFF
_LONG_DRAW = 1 << 14  # words from which moving (60 us) pays, once numpy.random is imported
_MANY = 1 << 21  # words, all told, from which importing it pays

# The layout of torch.get_rng_state(): the seed, how many words are left and which is next, the
# words widened to 64 bits, the kept normals (the float one is written by no CPU function).
_STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("words", "<u8", (_WORDS,)),
        ("normal_x", "<f8"),
        ("normal", "<f8"),
        ("normal_rho", "<f8"),
        ("normal_valid", "<i8"),
        ("float_normal", "<f4"),
        ("float_normal_valid", "<i4"),
    ]
)


def _words_of_seed(seed: int) -> list[int]:
    """The 624 words of Knuth's linear initialisation, from the low 32 bits of the seed."""
    word = seed & _WORD_MASK
    words = [word]
    for index in range(1, _WORDS):
        word = (1812433253 * (word ^ (word >> 30)) + index) & _WORD_MASK
        words.append(word)
    return words


class Generator:
    """PyTorch's CPU generator. With seed None it is seeded from entropy when first needed."""

    __slots__ = ("_drawn", "_numpys", "_seed", "_source", "next_normal")

    def __init__(self, seed: int | None = DEFAULT_SEED) -> None:
        self._seed = 0
        self._source: Random | None = None
        self._numpys: MT19937 | None = None  # in use instead of _source once set
        self._drawn = 0  # words drawn in blocks
        self.next_normal: float | None = None  # the second of the last pair of serial normals
        if seed is not None:
            self.manual_seed(seed)

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"

    def manual_seed(self, seed: int) -> Generator:
        """Start again from a seed; negative seeds count from 2**64 down, as in PyTorch.

        Raises ValueError outside -2**63 ... 2**64 - 1.
        """
        if not -(1 << 63) <= seed <= _SEED_MASK:
            raise TensorValueError("Overflow when unpacking long long")
        self._seed = seed & _SEED_MASK
        source = Random()
        source.setstate((*_words_of_seed(self._seed), _WORDS))
        self._source, self._numpys = source, None
        self.next_normal = None
        return self

    def seed(self) -> int:
        """Start again from 64 bits of entropy and return them."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed in use."""
        self._ready()
        return self._seed

    def clone(self) -> Generator:
        """A second generator in the same state."""
        twin = Generator(None)
        twin._source = Random()
        twin._source.setstate(self._engine_state())
        twin._seed = self._seed
        twin.next_normal = self.next_normal
        return twin

    def get_state(self) -> NDArray[np.uint8]:
        """The state as the 5056 bytes of torch.get_rng_state()."""
        *words, used = self._engine_state()
        state = np.zeros((), _STATE)
        # Freshly seeded, torch's place in the block is 0; after 624 draws it is 624. Both mean
        # that the next draw makes a new block.
        fresh = used == _WORDS and words[0] == self._seed & _WORD_MASK
        state["seed"] = self._seed
        state["left"] = _WORDS + 1 - used
        state["seeded"] = 1
        state["next"] = 0 if fresh else used
        state["words"] = words
        if self.next_normal is not None:
            state["normal"] = self.next_normal
            state["normal_valid"] = 1
        return np.frombuffer(state.tobytes(), np.uint8).copy()

    def set_state(self, state: NDArray[np.uint8]) -> None:
        """Take a state as get_state gives it.

        Raises TypeError for another dtype, RuntimeError for another size or broken content.
        """
        if state.dtype != np.uint8:
            raise TensorTypeError("RNG state must be a torch.ByteTensor")
        if state.size != STATE_BYTES:
            raise TensorRuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input "
                f"RNG state size to be {state.size}"
            )
        record = np.frombuffer(state.tobytes(), _STATE)[0]
        left, after = int(record["left"]), int(record["next"])
        if not (record["seeded"] and 0 < left <= _WORDS and after <= _WORDS):
            raise TensorRuntimeError("Invalid mt19937 state")
        words = (record["words"] & np.uint64(_WORD_MASK)).tolist()
        source = Random()
        source.setstate((*words, _WORDS if left == 1 else after))
        self._source, self._numpys = source, None
        self._seed = int(record["seed"])
        self.next_normal = float(record["normal"]) if record["normal_valid"] else None

    def words(self, count: int) -> NDArray[np.uint32]:
        """The next `count` 32-bit words; the array may be read-only."""
        if self._numpys is not None:
            return self._numpys.random_raw(count).astype(np.uint32)
        bits = self._ready().getrandbits(32 * count) if count else 0
        return np.frombuffer(bits.to_bytes(4 * count, "little"), np.uint32)

    def uniform53(self) -> float:
        """One float64 draw: 53 bits of two words, the first one high."""
        if self._numpys is not None:
            high, low = self._numpys.random_raw(2).tolist()
        else:
            pair = self._ready().getrandbits(64)
            high, low = pair & _WORD_MASK, pair >> 32
        return float((high & 0x1FFFFF) << 32 | low) * 2.0**-53

    def blocks(self, count: int, size: int = BLOCK) -> Iterator[NDArray[np.uint32]]:
        """The next `count` words in blocks of `size`; to be read to the end."""
        if self._numpys is None:
            self._drawn += count
            if self._drawn >= _MANY or (count >= _LONG_DRAW and "numpy.random" in sys.modules):
                self._move_to_numpy()
        while count > 0:
            yield self.words(min(size, count))
            count -= size

    def _move_to_numpy(self) -> None:
        from numpy.random import MT19937

        *words, used = self._ready().getstate()
        numpys = MT19937(0)
        key = np.array(words, np.uint32)
        numpys.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": used}}
        self._numpys = numpys

    def _engine_state(self) -> tuple[int, ...]:
        """The 624 words and the number of those already used."""
        if self._numpys is None:
            return self._ready().getstate()
        state = self._numpys.state["state"]
        return (*state["key"].tolist(), int(state["pos"]))

    def _ready(self) -> Random:
        if self._source is None:
            self.seed()
        source = self._source
        assert source is not None
        return source


Generator.__name__ = "torch._C.Generator"  # what Python's own errors call it
