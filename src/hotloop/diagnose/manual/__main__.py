"""`python -m hotloop.diagnose.manual docs/diagnose.md` writes the page of all rules; `--check` compares."""

import sys

from hotloop.diagnose.manual.pages import BOOK

sys.exit(BOOK.write(sys.argv[1:]))
