"""Models from Python: runs, explanations, papers, and tables that other packages take."""

from __future__ import annotations

import pytest

import bellwire
from bellwire import model


def test_an_operation_is_explained_without_gaps():
    """The intervals of a PUT follow each other and sum to the whole."""
    put = model.explain("put", 4096)
    ends = [start + length for start, length in zip(put["start_ps"], put["length_ps"])]
    assert put["start_ps"] == [0, *ends[:-1]] and put.total_ps == ends[-1] > 0
    assert put._repr_svg_().startswith("<svg") and "PUT" in put.title
    other = model.explain("put", 4096, {"nic": {"clock": "125 MHz"}})
    assert other.total_ps > put.total_ps
    for wrong in (("put", 0, {"nonsense": 1}), ("push", 1, None), ("nap-indirect", 4096, None)):
        with pytest.raises(bellwire.ModelError):
            model.explain(*wrong)


def test_runs_report_and_repeat():
    """A plan runs to its report, the same each time, and progress is told."""
    shares = []
    plan = model.example("network")
    report = model.run(plan, progress=shares.append)
    assert report and shares[-1] == 1.0 and shares == sorted(shares)
    assert model.run(plan) == report
    with pytest.raises(bellwire.ModelError, match="line"):
        model.run(plan + "\nnonsense = 1\n")


def test_a_plan_is_a_file_a_text_or_a_mapping(tmp_path):
    """The same plan gives the same report in each form, and names its schedule by a path."""
    (tmp_path / "plan.toml").write_text(model.example("schedule"))
    with pytest.raises(FileNotFoundError):
        model.run(tmp_path / "plan.toml")
    goal = model.example("goal")
    name = next(line for line in model.example("schedule").splitlines() if line.startswith("goal"))
    (tmp_path / name.split('"')[1]).write_text(goal)
    by_plan = model.run(tmp_path / "plan.toml")
    (tmp_path / "program.goal").write_text(goal)
    assert model.run(tmp_path / "program.goal") == model.run(goal)
    assert by_plan.keys() == model.run(goal).keys()


def test_an_exception_in_a_callback_ends_a_run():
    """What `progress` raises comes through, and the run does not go on."""
    calls = []

    def progress(share: float) -> None:
        calls.append(share)
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        model.run(model.example("network"), progress=progress)
    assert len(calls) == 1


def test_papers_are_tables_that_others_take():
    """An experiment is a table for pyarrow, pandas and polars, and its figures are points."""
    systems = model.systems()
    assert "chpp" in systems["name"] and len(systems) == len(systems["experiments"])
    values = model.paper("chpp", "table3")
    assert len(values) > 0 and set(values["experiment"]) == {"table3"}
    assert any(published is not None for published in values["published"])
    assert values.drawings and all(svg.startswith("<svg") and "table3" in svg for svg in values.drawings)
    assert values._repr_html_().count("data:image/svg+xml;base64,") == min(6, len(values.drawings))
    pyarrow = pytest.importorskip("pyarrow")
    taken = pyarrow.table(values)
    assert taken.column_names == values.keys() and taken.column("model").to_pylist() == values["model"]
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(values)["what"].to_list() == values["what"]
    with pytest.raises(bellwire.ModelError, match="there are"):
        model.paper("nothing")
    with pytest.raises(bellwire.ModelError, match="there are"):
        model.paper("chpp", "nothing")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(values)
    assert list(frame.columns) == values.keys() and list(frame["what"]) == values["what"]


def test_a_notebook_shows_the_first_rows_of_a_table():
    """A table of any length is shown by its first rows and their number."""
    for count, shown in ((0, 0), (20, 20), (21, 20), (10_000, 20)):
        html = model.Table({"<n>": list(range(count))})._repr_html_()
        assert html.startswith("<table><tr><th>&lt;n&gt;</th>") and html.count("<td>") == shown
        assert f"<p>{count} rows." in html and ("first 20" in html) == (count > 20)


def test_a_number_is_no_plan():
    """A number names no file: that of its descriptor would be read, and closed."""
    for wrong in (5, 0, None, b"plan.toml"):
        for use in (model.run, bellwire.sweep, lambda of: model.explain("put", 8, of or 1)):
            with pytest.raises(TypeError, match="a file, its text or a mapping"):
                use(wrong)
