"""`python3 -m labkit …`: also on a Python too old for the rest, which gets one line."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("labkit: Python 3.11 or newer is needed, this is %d.%d: start it with python3.11" % sys.version_info[:2])  # noqa: UP031

from labkit.cli import main

sys.exit(main())
