"""A step as a file for other programs (docs/exports.md)."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path
from typing import Any, Literal

CsvTable = Literal["memory", "storages", "stalls", "timeline"]

_ENDINGS = {".json": "chrome", ".svg": "svg", ".csv": "csv", ".pickle": "memory-viz", ".pkl": "memory-viz"}


def text_style() -> dict[str, Any]:
    """How a memory curve is drawn in a text: in block characters where stdout can show them."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    return {"width": 100, "unicode": encoding.startswith("utf")}


class Exports:
    """What a recorded and a planned step can be written as."""

    __slots__ = ()

    def _exported(self, format: str, table: str) -> bytes:
        raise NotImplementedError

    def chrome_trace(self) -> str:
        """A Chrome trace (JSON) for https://ui.perfetto.dev; a planned step beside the recorded one."""
        return self._exported("chrome", "memory").decode()

    def svg(self) -> str:
        """A picture, 1200 x 700: memory by class, the budget, lanes with stalls."""
        return self._exported("svg", "memory").decode()

    def csv(self, table: CsvTable = "memory") -> str:
        """A table as CSV: times in ns since the step's begin, sizes in bytes."""
        return self._exported("csv", table).decode()

    def memory_viz(self) -> bytes:
        """A pickle for https://docs.pytorch.org/memory_viz, as torch.cuda.memory._dump_snapshot() writes."""
        return self._exported("memory-viz", "memory")

    def export(self, path: str | os.PathLike[str], *, table: CsvTable = "memory") -> None:
        """Writes the step as the ending of `path` says: .json (a Chrome trace), .svg, .csv (`table`) or .pickle;
        with .gz behind it compressed. Raises ValueError: another ending; OSError: it cannot be written."""
        file = Path(path)
        plain = file.with_suffix("") if file.suffix == ".gz" else file
        format = _ENDINGS.get(plain.suffix)
        if format is None:
            raise ValueError(f"{file}: the ending says no format; there are {', '.join(_ENDINGS)}, each also with .gz")
        content = self._exported(format, table)
        file.write_bytes(gzip.compress(content, mtime=0) if file.suffix == ".gz" else content)

    def _repr_svg_(self) -> str:
        return self.svg()


def svg_for_html(svg: str) -> str:
    """An SVG document as an element of an HTML page, as wide as there is room."""
    return '<div style="max-width:1200px">' + svg[svg.index("<svg") :] + "</div>"
