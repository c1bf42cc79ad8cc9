"""Tables as lists of dictionaries."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, unused-ignore]

_ROWS_SHOWN = 20


class Table(list[dict[str, Any]]):
    """A list of dictionaries, one a row, all with the same keys in the same order."""

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas.DataFrame. Raises ImportError where pandas is not installed."""
        import pandas

        return pandas.DataFrame(list(self))

    def column(self, name: str) -> list[Any]:
        """One column. Raises KeyError: no such column."""
        return [row[name] for row in self]

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no rows</p>"
        head = "".join(f"<th>{html.escape(str(key))}</th>" for key in self[0])
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row.values()) + "</tr>"
            for row in self[:_ROWS_SHOWN]
        )
        more = len(self) - _ROWS_SHOWN
        rest = f"<p>and {more} more rows</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"
