"""What trained models wrote, from their records: laid out to be read, and counted.

The counting is that of `workbook.fluency`; none of it says that a text makes sense.
"""

import textwrap

from workbook import corpora, fluency
from workbook.runs import Result

WIDTH = 88  # characters of a line


def text_of(result: Result) -> str:
    """What the model of a run wrote, without end tokens. Raises: ValueError for one that failed."""
    if result.sample is None:
        raise ValueError(f"{result.folder.name} wrote nothing: it diverged; give a finished run")
    return result.sample["text"].replace(corpora.END_OF_TEXT, "").strip()


def laid_out(result: Result) -> str:
    """The same in short lines, its own line ends kept."""
    return "\n".join(textwrap.fill(line, WIDTH) for line in text_of(result).split("\n"))


def fluency_of(result: Result) -> dict[str, str]:
    """How much of the text is known, repeated and copied, as a column of a table."""
    config, text = result.config, text_of(result)
    source = corpora.path(config.corpus, "train", config.corpus_bytes).read_text(encoding="utf-8")
    return {
        "words": f"{len(fluency.words(text)):,}",
        "known words": f"{fluency.known_share(text, fluency.vocabulary([source])):.0%}",
        "repeated": f"{fluency.repeated_share(text):.0%}",
        "longest copy (words)": str(len(fluency.longest_copy(text, source).split())),
    }
