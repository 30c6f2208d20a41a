"""`python -m mctsvs`."""

import sys

from mctsvs.cli import main

sys.exit(main())
