"""`python -m hotloop.diagnose.manual docs/diagnose.md` writes the page of all rules; `--check` compares."""

from __future__ import annotations

import sys

from hotloop.diagnose.pages import BOOK

manual = BOOK.manual

if __name__ == "__main__":
    sys.exit(BOOK.write(sys.argv[1:]))
