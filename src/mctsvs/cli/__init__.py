"""The command line: `mctsvs run`, `resume`, `show`, `report`, `watch`, `methods`, ..., and the group `mctsvs bench`."""

from __future__ import annotations

import importlib
import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Run the command; 0 if all went well, 2 with one sentence for bad input, 130 after Ctrl-C."""
    from mctsvs.utils.output import complaint, lasting_output

    with lasting_output() as output:
        code = _run(sys.argv[1:] if argv is None else argv)
        output.flush()
        if wrong := complaint(output):
            print(f"mctsvs: {wrong}", file=sys.stderr)
    return code or int(bool(wrong))


def _run(words: list[str]) -> int:
    bench = words[:1] == ["bench"]
    if bench:  # all methods are compared on one thread, those of other libraries too; before numpy is loaded
        for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(name, "1")

    from mctsvs.cli.arguments import plain_warnings
    from mctsvs.utils.formatting import printable
    from mctsvs.utils.validation import InputError

    parser = importlib.import_module("mctsvs.bench.commands" if bench else "mctsvs.cli.commands").parser()
    arguments = parser.parse_args(words[1:] if bench else words)
    try:
        with plain_warnings():
            return int(arguments.command(arguments))
    except InputError as error:
        print(f"mctsvs: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mctsvs: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
