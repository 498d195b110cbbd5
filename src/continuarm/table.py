"""Table: named columns and rows of plain values, printed so that people can read them."""

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["Table"]


class Table(NamedTuple):
    """Rows of plain values under named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> "Table":
        """A table of these columns and rows."""
        return cls(tuple(columns), tuple(tuple(row) for row in rows))

    def dicts(self) -> list[dict[str, Any]]:
        """One `{column: value}` per row, as data frames take them."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def markdown(self) -> str:
        """The table for a page of Markdown."""
        lines = [list(self.columns), ["---"] * len(self.columns), *self.text()]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def html(self) -> str:
        """The table for a web page or a notebook; cells have the class number, yes or no."""
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self.columns)
        rows = []
        for plain, row in zip(self.rows, self.text(), strict=True):
            cells = []
            for value, text in zip(plain, row, strict=True):
                kind = "number" if isinstance(value, int | float) else text.partition(",")[0]
                kind = kind if kind in ("number", "yes", "no") else ""
                cells.append(f'<td class="{kind}">{html.escape(text)}</td>')
            rows.append(f"<tr>{''.join(cells)}</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def _repr_html_(self) -> str:
        return self.html()

    def __str__(self) -> str:
        lines = [list(self.columns), *self.text()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        numeric = [
            all(isinstance(row[i], int | float | None) for row in self.rows)
            for i in range(len(self.columns))
        ]
        padded = (
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in lines
        )
        return "\n".join(padded)

    def text(self) -> list[list[str]]:
        """The rows as they are printed."""
        return [[_format(value) for value in row] for row in self.rows]


def _format(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
