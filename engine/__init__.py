"""A tensor engine with PyTorch's semantics; it knows nothing of the program that uses it."""
