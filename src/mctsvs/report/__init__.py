"""A run as one self-contained page that opens without a network: `mctsvs report run.db -o report.html`.

>>> study.report("report.html")
>>> mctsvs.report.write([one, other], "both.html")
"""

from __future__ import annotations

from mctsvs.report.write import html, write

__all__ = ["html", "write"]
