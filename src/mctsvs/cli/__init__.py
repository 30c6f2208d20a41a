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
    from mctsvs.cli.arguments import plain_warnings
    from mctsvs.utils.formatting import printable
    from mctsvs.utils.validation import InputError

    words = sys.argv[1:] if argv is None else argv
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
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
