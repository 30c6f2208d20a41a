"""A shell that starts the tests in the background ignores Ctrl-C for them, and so for the programs they start."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
