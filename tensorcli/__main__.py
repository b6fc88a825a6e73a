"""`python -m tensorcli`: the console script by another name; knows only the entry."""

from __future__ import annotations

from tensorcli.entry import main

if __name__ == "__main__":
    main()
