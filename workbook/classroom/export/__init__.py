"""The write-up of saved notebooks: Markdown, HTML, PDF and an archive of the code.

`workbook export` calls `write.export`; open that first. In the order of the work:
`saved_notebooks` reads the answers out of the notebooks, `status` finds the state of each problem,
`clean` makes safe what people wrote, `document` composes one syntax tree of it all, and `web` and
`pdf` write it. `pandoc` has the tree's nodes and runs the program of that name.
"""

from workbook.lazy import lazy

HOMES = {"export": "write"}
__all__ = ["export"]
__getattr__, __dir__ = lazy(__name__, HOMES)
