"""What a notebook shows of a run: its report, and single charts of it."""

from __future__ import annotations

from html import escape
from os import PathLike, fspath
from pathlib import Path


class Report:
    """The report of a run, a self-contained page, which a notebook shows.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path):
        self.path = path

    def __repr__(self) -> str:
        return f"<Report {self.path}>"

    def _repr_html_(self) -> str:
        page = self.path.read_text(encoding="utf-8")
        return f'<iframe srcdoc="{escape(page)}" title="report" style="width: 100%; height: 40em; border: 0"></iframe>'


class Plot:
    """A chart as a drawing, which a notebook shows.

    Attributes:
        name: what it shows.
        svg: the text of the drawing, a self-contained SVG.
    """

    def __init__(self, name: str, svg: str):
        self.name = name
        self.svg = svg

    def __repr__(self) -> str:
        return f"<Plot {self.name}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the drawing to a file, whose name ends in `.svg`.

        Raises:
            ValueError: it ends otherwise.
        """
        if not fspath(path).endswith(".svg"):
            raise ValueError(f"`{fspath(path)}` does not end in `.svg`: a plot is saved as SVG, which other programs turn into PNG")
        Path(path).write_text(self.svg, encoding="utf-8")
