"""Executes the notebooks, each in an empty folder: `run.py FOLDER`. Fails at a cell that fails."""

from __future__ import annotations

import pathlib
import sys

import nbformat
from nbclient import NotebookClient


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
        print(f"{path.name}: {sum(cell.cell_type == 'code' for cell in book.cells)} cells ran")


if __name__ == "__main__":
    main()
