"""Models of network interfaces, switches and networks, in virtual time.

`run` puts a load on a model, `explain` says where the time of one operation goes, `paper` runs the
experiments of a paper beside its published values. Results are tables that pandas, polars, pyarrow
and DuckDB take (the Arrow PyCapsule interface), and drawings that a notebook shows.

One seed gives one result, on every machine.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from bellwire import _bellwire

__all__ = ["Explanation", "Table", "example", "explain", "figures", "paper", "parameters", "run", "systems"]

# Rows of a table that a notebook shows.
SHOWN_ROWS = 20
# And drawings, which are large in a sweep of many points.
SHOWN_DRAWINGS = 6

Config = Union[str, "os.PathLike[str]", Mapping[str, Any]]


class Table:
    """Columns of equal length, by name, and drawings of them, if there are any.

    `polars.DataFrame(table)`, `pyarrow.table(table)` and `pandas.DataFrame.from_arrow(table)` take
    it by the Arrow PyCapsule interface, which needs the package pyarrow (`bellwire[arrow]`).
    `pandas.DataFrame(table)` takes the rows and works without it. A notebook shows the first
    rows, and before them the first drawings.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]], drawings: Sequence[str] = ()) -> None:
        self._columns = {name: list(values) for name, values in columns.items()}
        self._drawings = list(drawings)

    @property
    def drawings(self) -> List[str]:
        """The drawings, each the text of an SVG file."""
        return self._drawings

    def __getitem__(self, name: str) -> List[Any]:
        """The values of a column."""
        return self._columns[name]

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values()), []))

    def keys(self) -> List[str]:
        """The names of the columns."""
        return list(self._columns)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        """The rows, as of `rows`."""
        return self.rows()

    def rows(self) -> Iterator[Dict[str, Any]]:
        """The rows, each by the names of the columns."""
        for values in zip(*self._columns.values()):
            yield dict(zip(self._columns, values))

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """An Arrow stream of the rows."""
        try:
            import pyarrow
        except ImportError:
            raise ImportError("tables are handed over by pyarrow: pip install 'bellwire[arrow]'") from None
        return pyarrow.table(self._columns).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self._columns)}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{_text(name)}</th>" for name in self._columns)
        rows = (
            "<tr>" + "".join(f"<td>{_text(value)}</td>" for value in row.values()) + "</tr>"
            for row in itertools.islice(self.rows(), SHOWN_ROWS)
        )
        more = f" The first {SHOWN_ROWS} are shown." if len(self) > SHOWN_ROWS else ""
        drawings = "".join(map(_image, self.drawings[:SHOWN_DRAWINGS]))
        if len(self.drawings) > SHOWN_DRAWINGS:
            drawings += f"<p>{len(self.drawings)} drawings. The first {SHOWN_DRAWINGS} are shown.</p>"
        return f"{drawings}<table><tr>{head}</tr>{''.join(rows)}</table><p>{len(self)} rows.{more}</p>"


class Explanation(Table):
    """The intervals of one operation: stage, cause of a wait or `None`, start and length in ps.

    A notebook shows it as a drawing.
    """

    def __init__(self, title: str, svg: str, intervals: Sequence[Tuple[str, Optional[str], int, int]]) -> None:
        stages, causes, starts, lengths = (list(column) for column in zip(*intervals))
        super().__init__({"stage": stages, "cause": causes, "start_ps": starts, "length_ps": lengths})
        self.title = title
        self.svg = svg

    @property
    def total_ps(self) -> int:
        """From the processor's start of the operation to its end. The intervals sum to it."""
        return sum(self["length_ps"])

    def _repr_svg_(self) -> str:
        return self.svg


def run(
    config: Config,
    *,
    progress: Optional[Callable[[float], object]] = None,
) -> Dict[str, Any]:
    """Runs a machine or a network under load until it is steady, or a program's schedule.

    `config` is a file, the text of one, or the same as a mapping. `example` gives files that
    explain every parameter. The result is the report of `bellwire model run --json`. `progress` is
    called with the share done, from 0 to 1; an exception in it ends the run.

    Raises: `ModelError` with the line of a wrong plan, or with what waits for what in a deadlock.
    """
    text, folder = _read(config)

    def schedule(path: os.PathLike[str]) -> str:
        with open(os.path.join(folder, path), encoding="utf-8") as file:
            return file.read()

    report: Dict[str, Any] = json.loads(_bellwire._model_run(text, schedule, progress))
    return report


def explain(op: str, length: int, config: Optional[Config] = None) -> Explanation:
    """Says where the time of one operation of the cHPP machine goes, stage by stage.

    `op` is `nap-immediate`, `nap-indirect`, `put` or `get`; `length` is in bytes. `config` has the
    parameters that differ from the paper's prototype.

    Raises: `ModelError`.
    """
    text = None if config is None else _read(config)[0]
    return Explanation(*_bellwire._model_explain(op, length, text))


def paper(name: str, *experiments: str) -> Table:
    """Runs experiments of a paper on the model of its system: all, or those that are named.

    A row is a value beside the published one, if there is one, with the error in percent. `role`
    says whether a constant was fitted to it or the mechanism predicts it. Its drawings are those of
    `bellwire paper all --html`.

    Raises: `ModelError`.
    """
    reports, drawings = _reports(name, experiments)
    names = ["what", "unit", "role", "model", "published", "error_percent", "within_percent", "explanation"]
    columns: Dict[str, List[Any]] = {"experiment": [], **{name: [] for name in names}}
    for report in reports:
        for value in report["values"]:
            columns["experiment"].append(report["id"])
            for column in names:
                columns[column].append(value[column])
    return Table(columns, drawings)


def figures(name: str, *experiments: str) -> Table:
    """The points of the figures of a paper's experiments: as `paper`, but a row is a point.

    `origin` says whether the model or the paper drew the series.
    """
    names = ["experiment", "figure", "series", "origin", "x", "y", "x_unit", "y_unit"]
    points: List[Tuple[Any, ...]] = []
    reports, drawings = _reports(name, experiments)
    for report in reports:
        for figure in report["figures"]:
            units = (figure["x"]["unit"], figure["y"]["unit"])
            for series in figure["series"]:
                place = (report["id"], figure["title"], series["name"], series["origin"])
                points += [(*place, float(x), float(y), *units) for x, y in series["points"]]
    columns = {column: [point[at] for point in points] for at, column in enumerate(names)}
    return Table(columns, drawings)


def systems() -> Table:
    """The modelled systems: name, paper or `None`, title, and the names of the experiments."""
    rows = _bellwire._model_systems()
    return Table(
        {
            "name": [name for name, _, _, _ in rows],
            "paper": [paper for _, paper, _, _ in rows],
            "title": [title for _, _, title, _ in rows],
            "experiments": [[id for id, _ in experiments] for _, _, _, experiments in rows],
        }
    )


def parameters(name: str) -> str:
    """The parameters of a model as TOML, each with its source."""
    return _bellwire._model_parameters(name)


def example(name: str) -> str:
    """A file for `run` that explains itself: `chpp`, `network`, `schedule` or `goal`."""
    return _bellwire._model_example(name)


def _reports(name: str, experiments: Sequence[str]) -> Tuple[List[Dict[str, Any]], List[str]]:
    """The reports of experiments, and their drawings."""
    if not experiments:
        known = next((row for row in systems().rows() if name in (row["name"], row["paper"])), None)
        # An unknown name is refused below, with the names that there are.
        experiments = known["experiments"] if known and known["paper"] else [""]
    ran = [_bellwire._model_experiment(name, id) for id in experiments]
    return [json.loads(report) for report, _ in ran], [svg for _, svgs in ran for svg in svgs]


def _read(config: Config) -> Tuple[str, str]:
    """The text of a plan, and the folder that its paths are relative to."""
    if isinstance(config, Mapping):
        return _toml(config), ""
    if isinstance(config, str) and "\n" in config:
        return config, ""
    if not isinstance(config, (str, os.PathLike)):
        # An integer would be read from the descriptor of that number.
        raise TypeError(f"a plan is a file, its text or a mapping, and this is {config!r}")
    with open(config, encoding="utf-8") as file:
        return file.read(), os.path.dirname(os.fspath(config))


def _toml(table: Mapping[str, Any], path: Tuple[str, ...] = ()) -> str:
    """A mapping as TOML: numbers, texts, flags, lists of them, and mappings."""
    lines = [f"[{'.'.join(path)}]"] if path else []
    lines += [
        f"{_key(key)} = {_value(value)}" for key, value in table.items() if not isinstance(value, Mapping)
    ]
    tables = [
        _toml(value, (*path, _key(key))) for key, value in table.items() if isinstance(value, Mapping)
    ]
    return "\n".join([*lines, *tables]) + "\n"


def _key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(of)}" for key, of in value.items()) + "}"
    if isinstance(value, (bool, int, float, str)):
        return json.dumps(value, ensure_ascii=False)
    raise TypeError(f"{type(value).__name__} has no form in TOML")


def _image(svg: str) -> str:
    # As an image, so that its styles are its own.
    data = base64.b64encode(svg.encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" style="max-width: 100%">'


def _text(value: object) -> str:
    text = "" if value is None else str(value)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
