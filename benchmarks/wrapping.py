"""Pages of the docs at 100 columns."""

from textwrap import TextWrapper

__all__ = ["wrapped"]


def wrapped(text: str) -> str:
    """Paragraphs and lists at 100 columns; tables, headings and figures as they are."""
    blocks = []
    for block in text.split("\n\n"):
        is_list = block.startswith("- ")
        items = [f"- {item}" for item in block[2:].split("\n- ")] if is_list else [block]
        filler = TextWrapper(
            100, subsequent_indent="  " if is_list else "", break_on_hyphens=False
        )
        lines = [filler.fill(" ".join(item.split())) for item in items]
        blocks.append(block if block.startswith(("|", "#", "!")) else "\n".join(lines))
    return "\n\n".join(blocks) + "\n"
