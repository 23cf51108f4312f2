"""Rows with names, and what data frames are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Sequence

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Table"]


class Table(Sequence[dict]):
    """Rows, which are dicts of the same columns; what a row does not have is None."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        found = list(rows)
        # In the order in which they first come.
        names = dict.fromkeys(name for row in found for name in row)
        #: Names of the columns.
        self.columns: list[str] = list(names)
        self._rows = [{name: row.get(name) for name in names} for row in found]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index):  # type: ignore[override]
        return self._rows[index]

    def __repr__(self) -> str:
        return f"<wavetap.Table of {len(self)} rows: {', '.join(self.columns)}>"

    def column(self, name: str) -> list[Any]:
        """The values of a column. Raises KeyError if there is none of this name."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r}: there are {', '.join(self.columns) or 'none'}")
        return [row[name] for row in self._rows]

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by their names."""
        return {name: self.column(name) for name in self.columns}

    def to_pandas(self) -> "pandas.DataFrame":
        """A data frame of pandas, which has to be installed."""
        import pandas

        return pandas.DataFrame(self._rows, columns=self.columns)

    def to_polars(self) -> "polars.DataFrame":
        """A data frame of Polars, which has to be installed."""
        import polars

        return polars.DataFrame(self.to_dict(), strict=False)

    def to_arrow(self) -> "pyarrow.Table":
        """A table of Arrow; pyarrow has to be installed."""
        import pyarrow

        return pyarrow.table(self.to_dict())
