"""Tables and series, as plain Python values or pandas DataFrames."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Sequence, Union

if TYPE_CHECKING:
    import pandas

Cell = Union[float, int, str, bool, None]


class Table(Sequence[Dict[str, Cell]]):
    """Rows with named columns. A cell without a value is None."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]], units: Dict[str, str]) -> None:
        self.columns = list(columns)
        self.units = units  # by column, where known
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return Table(self.columns, self._rows[i], self.units)
        return dict(zip(self.columns, self._rows[i]))

    def __iter__(self) -> Iterator[Dict[str, Cell]]:
        return (dict(zip(self.columns, row)) for row in self._rows)

    def head(self, n: int = 5) -> "Table":
        """Returns the first n rows."""
        return Table(self.columns, self._rows[:n], self.units)

    def column(self, name: str) -> List[Cell]:
        """Returns the cells of a column, from the first row to the last.

        Raises:
            KeyError: if there is no such column.
        """
        if name not in self.columns:
            raise KeyError(f"there is no column {name!r}; available: {', '.join(self.columns)}")
        i = self.columns.index(name)
        return [row[i] for row in self._rows]

    def to_dataframe(self) -> "pandas.DataFrame":
        """Returns a pandas DataFrame. Requires pandas."""
        return _pandas().DataFrame([list(r) for r in self._rows], columns=self.columns)

    def __repr__(self) -> str:
        shown = [self.columns] + [[_text(c) for c in row] for row in self._rows[:10]]
        widths = [max(len(row[i]) for row in shown) for i in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in shown]
        return "\n".join(lines + [f"({len(self)} rows)"] * (len(self) > 10))

    def _repr_html_(self) -> str:
        def heading(name: str) -> str:
            unit = self.units.get(name, "")
            return f"<th>{html.escape(name)}{f' ({html.escape(unit)})' if unit else ''}</th>"

        rows = "".join("<tr>" + "".join(f"<td>{html.escape(_text(c))}</td>" for c in row) + "</tr>" for row in self._rows[:50])
        more = f"<p>{len(self)} rows</p>" if len(self) > 50 else ""
        return f"<table><thead><tr>{''.join(map(heading, self.columns))}</tr></thead><tbody>{rows}</tbody></table>{more}"


class Column(NamedTuple):
    """A column of a series."""

    name: str
    unit: str  # "" if unknown
    values: List[Union[float, None]]


class Series:
    """Numbers along an axis, downsampled for plotting."""

    def __init__(self, record: Dict[str, Any]) -> None:
        self.name: str = record["name"]
        self.file: str = record["file"]  # path in the result
        self.rows: int = record["rows"]  # number of rows of the file, before downsampling
        self.incomplete: bool = record.get("incomplete", False)  # the job is still running
        self.columns = [Column(c["name"], c.get("unit", ""), v) for c, v in zip(record["columns"], record["values"])]

    @property
    def axis(self) -> Column:
        """The first column."""
        return self.columns[0]

    def __getitem__(self, name: str) -> List[Union[float, None]]:
        for c in self.columns:
            if c.name == name:
                return c.values
        raise KeyError(f"there is no column {name!r}; available: {', '.join(c.name for c in self.columns)}")

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def to_dataframe(self) -> "pandas.DataFrame":
        """Returns a pandas DataFrame indexed by the axis. Requires pandas."""
        frame = _pandas().DataFrame({c.name: c.values for c in self.columns})
        return frame.set_index(self.axis.name) if self.columns else frame

    def __repr__(self) -> str:
        return f"<Series {self.name}: {', '.join(c.name for c in self.columns)}; {len(self)} of {self.rows} rows>"

    def _repr_html_(self) -> str:
        from ._html import plot

        return plot(self)


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and not isinstance(cell, bool):
        return f"{cell:.6g}"
    return str(cell)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as e:
        raise ImportError("this needs pandas, which is not installed: pip install pandas") from e
    return pandas
