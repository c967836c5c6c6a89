"""What trained models wrote, from their records: laid out to be read, and counted.

The counts are those of `workbook.corpora.fluency`; none of them says that a text makes sense.
"""

import textwrap

from workbook.corpora import corpora
from workbook.experiments.records import Result

WIDTH = 88  # characters of a line


def text_of(result: Result) -> str:
    """What the model of a run wrote, without end tokens. Raises: ValueError for one that failed."""
    if result.sample is None:
        raise ValueError(f"{result.folder.name} wrote nothing: it diverged; give a finished run")
    return result.sample["text"].replace(corpora.END_OF_TEXT, "").strip()


def sample_text(result: Result) -> str:
    """The same in short lines, its own line ends kept."""
    return "\n".join(textwrap.fill(line, WIDTH) for line in text_of(result).split("\n"))


def fluency_facts(result: Result) -> dict[str, str]:
    """How much of the text is known, repeated and copied, as a column of a table."""
    text_of(result)  # refuses a run that wrote none
    counts = result.sample["counts"]
    return {
        "words": f"{counts['words']:,}",
        "known words": f"{counts['known']:.0%}",
        "repeated": f"{counts['repeated']:.0%}",
        "longest copy (words)": f"{counts['copied_words']:,}",
    }
