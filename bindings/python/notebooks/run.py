"""Executes the notebooks, each in an empty folder: `run.py FOLDER`.

Fails at a cell that fails, and at a notebook that shows another number of pictures than it should.
"""

from __future__ import annotations

import pathlib
import sys

import nbformat
from nbclient import NotebookClient


# Pictures that each notebook shows.
PICTURES = {
    "1-first-message": 0,
    "2-all-reduce": 0,
    "3-nanoseconds-of-a-put": 3,
    "4-which-crossbar": 2,
}


def pictures(book: nbformat.NotebookNode) -> int:
    """The outputs of a notebook that are pictures, or have some."""
    shown = [out.get("data", {}) for cell in book.cells for out in cell.get("outputs", [])]
    return sum(
        "image/svg+xml" in data or "image/png" in data or "image/svg+xml" in data.get("text/html", "")
        for data in shown
    )


def main() -> None:
    results = pathlib.Path(sys.argv[1])
    books = sorted(pathlib.Path(__file__).parent.glob("*.ipynb"))
    if not books:
        sys.exit("there is no notebook")
    for path in books:
        folder = results / path.stem
        folder.mkdir(parents=True)
        book = nbformat.read(path, as_version=4)
        # The limit ends what hangs, and says nothing of speed.
        client = NotebookClient(book, timeout=120, resources={"metadata": {"path": str(folder)}})
        client.execute()
        nbformat.write(book, folder / path.name)
        if pictures(book) != PICTURES[path.stem]:
            sys.exit(f"{path.name} shows {pictures(book)} pictures, and not {PICTURES[path.stem]}")
        print(f"{path.name}: {sum(cell.cell_type == 'code' for cell in book.cells)} cells ran")


if __name__ == "__main__":
    main()
