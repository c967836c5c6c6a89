"""`python -m workbook` is the `workbook` command, also where no such command was installed."""

import sys

from workbook.classroom.cli import main

if __name__ == "__main__":
    sys.exit(main())
