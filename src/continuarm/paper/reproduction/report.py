"""report.html: tables and figures in one file that opens offline."""

import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from continuarm.table import Table

__all__ = ["Section", "write_report"]

Section = tuple[str, str, Sequence[Table], Sequence[str]]  # title, text, tables, figures
STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; display: block;
        overflow-x: auto; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #ddd; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.no { color: #a33; font-weight: bold; } td.yes { color: #275; }
figure { margin: 1.5rem 0; } figure svg { width: 100%; height: auto; }
"""


def write_report(path: Path, title: str, sections: Sequence[Section], folder: Path) -> None:
    """Write the report; figures are the SVG files of the folder."""
    body = [f"<h1>{html.escape(title)}</h1>"]
    for heading, text, tables, figures in sections:
        body.append(f"<h2>{html.escape(heading)}</h2>")
        body += [f"<p>{html.escape(part)}</p>" for part in text.split("\n\n") if part]
        body += [table.html() for table in tables]
        body += [f"<figure>{_svg(folder, name)}</figure>" for name in figures]
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>"
    )
    path.write_text(page, encoding="utf-8")


def _svg(folder: Path, name: str) -> str:
    """The drawing, with ids that no other drawing of the page has."""
    text = (folder / f"{name}.svg").read_text("utf-8")
    text = text[text.index("<svg") :]
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)


def markdown(title: str, sections: Sequence[Section], images: Mapping[str, str]) -> str:
    """The same as a page of Markdown."""
    parts = [f"# {title}"]
    for heading, text, tables, figures in sections:
        parts += [f"## {heading}", *([text] if text else [])]
        parts += [table.markdown() for table in tables]
        parts += [f"![{heading}]({images[name]})" for name in figures]
    return "\n\n".join(parts) + "\n"
