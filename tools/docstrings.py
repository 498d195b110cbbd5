"""The docstrings of the package as Markdown, for the pages of the API reference.

They are written to be read as text: a list of `name : what it is`, and examples that pytest runs.
mkdocs.yml names this file, and mkdocstrings hands every docstring to it.
"""

import re
from typing import Any

import griffe

__all__ = ["InMarkdown", "in_markdown"]

ITEM = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)$", re.M)


def in_markdown(text: str) -> str:
    """Headings that are underlined in bold, items as a list, examples as highlighted code."""
    text = re.sub(r"^(\w+)\n-{3,}$", r"**\1**\n", text, flags=re.M)
    text = re.sub(r"^(>>> (?:.+\n?)+)", _fenced, text, flags=re.M)
    return ITEM.sub(_item, text)


def _fenced(example: re.Match[str]) -> str:
    return f"```pycon\n{example[1].rstrip()}\n```\n"


def _item(line: re.Match[str]) -> str:
    names = ", ".join(f"`{name}`" for name in line[1].split(", "))
    return f"- {names}: {line[2]}"


class InMarkdown(griffe.Extension):
    """Rewrites each docstring when it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = in_markdown(obj.docstring.value)
