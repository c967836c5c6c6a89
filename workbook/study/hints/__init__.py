"""Two steps to each problem: a nudge, which is often a question, and then the idea."""

from workbook.study.hints import accounting, experiments, parts, tokenizers, training

HINTS: dict[str, tuple[str, str]] = (
    tokenizers.HINTS | parts.HINTS | accounting.HINTS | training.HINTS | experiments.HINTS
)
