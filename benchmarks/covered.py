"""How much of the code the tests reach: branch coverage by package, of the data that the tests have left.

    python benchmarks/covered.py [--least 92]

A row of a Markdown table for every package, and one for all. The share is that of statements and branches together.
Exit status 1: the last share is less than `--least`. `make test` runs it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def packages(report: dict[str, Any]) -> dict[str, list[int]]:
    """Sums of `COUNTS` over the files of each package; modules of their own are one package, "mctsvs"."""
    found: dict[str, list[int]] = defaultdict(lambda: [0] * len(COUNTS))
    for file, said in report["files"].items():
        inside = Path(file).parts[Path(file).parts.index("mctsvs") + 1 :]
        name = inside[0] if len(inside) > 1 else "mctsvs"
        found[name] = [total + said["summary"][count] for total, count in zip(found[name], COUNTS, strict=True)]
    return dict(sorted(found.items()))


def share(counts: list[int]) -> float:
    """Percent of statements and branches that were reached, rounded down: what is nearly enough is not enough."""
    statements, lines, branches, taken = counts
    return int(1000 * (lines + taken) / max(statements + branches, 1)) / 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--least", type=float, default=92.0, help="percent")
    least = parser.parse_args().least
    from coverage import Coverage
    from coverage.exceptions import NoDataError

    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        try:
            measured = Coverage(messages=False)
            measured.load()
            measured.json_report(outfile=file.name)
        except NoDataError:
            print("no data: run `make test` first", file=sys.stderr)
            return 1
        rows = packages(json.loads(Path(file.name).read_text()))
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    print("| package | statements | branches | covered |\n|---|---|---|---|")
    for name, counts in rows.items():
        print(f"| {name} | {counts[0]:,} | {counts[2]:,} | {share(counts):.1f} % |")
    enough = share(rows["all"]) >= least
    print(f"\nbranch coverage: {share(rows['all']):.1f} %, and {'at least' if enough else 'less than'} {least:g} %")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
