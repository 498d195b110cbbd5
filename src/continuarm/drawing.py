"""What all figures share: colours, and files that are checked first. Matplotlib is optional."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from continuarm.errors import MissingExtraError, SettingsError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "STYLES", "check_path", "figure_class", "write"]

# Okabe and Ito's palette, which colour-blind readers can tell apart; line styles for grey prints
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")


def figure_class() -> Any:
    """Matplotlib's Figure, or the line that says what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            'figures need matplotlib: pip install "continuarm[plot]"'
        ) from None
    return Figure


def check_path(path: str | Path) -> None:
    """Refuse a file that a figure cannot be written to, before any work is done."""
    known = figure_class()().canvas.get_supported_filetypes()
    path = Path(path)
    if path.suffix[1:].lower() not in known:
        raise SettingsError(
            f"a figure's file must end in one of {sorted(known)}, but got {str(path)!r}"
        )
    if not path.parent.is_dir() or path.is_dir():
        raise SettingsError(f"a figure's folder must exist, but got {str(path)!r}")


def write(figure: "Figure", path: str | Path) -> None:
    """Write a figure to a file that is checked first."""
    check_path(path)
    try:
        figure.savefig(path, dpi=200)
    except OSError as error:
        raise SettingsError(f"a figure's file must be writable, but got {error}") from None
