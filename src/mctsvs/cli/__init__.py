"""The command line: `mctsvs run`, `resume`, `show`, `report`, `watch`, `methods`, ..., and the group `mctsvs bench`."""

from __future__ import annotations

import importlib
import os
import sys

# One BLAS thread: matrices of a few hundred rows are slower with more, and the same seed must give the same points
# whatever the machine's number of cores. It has to be set before numpy is loaded.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


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
    from mctsvs.cli.arguments import plain_warnings
    from mctsvs.utils.formatting import printable
    from mctsvs.utils.validation import InputError

    home = "mctsvs.bench.commands" if words[:1] == ["bench"] else "mctsvs.cli.commands"  # loaded when called
    parser = importlib.import_module(home).parser()
    arguments = parser.parse_args(words[1:] if home.startswith("mctsvs.bench") else words)
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
