"""Ready-made is what the learner's own lines call, not what a library calls for them."""

import pytest
import torch

from workbook.classroom.checks.machinery.from_scratch import expect_from_scratch
from workbook.classroom.checks.machinery.verdicts import Wrong

CALLS = "import torch\ndef smooth(x):\n    return torch.nn.functional.softmax(x.softmax(0), 0)\n"


def made_in(path):
    """A function that calls torch's ready softmax, in a file at this path."""
    names = {}
    exec(compile(CALLS, path, "exec"), names)
    return lambda: names["smooth"](torch.ones(2))


def test_only_a_learners_line_takes_what_is_ready_made():
    with pytest.raises(Wrong, match="not from scratch yet"):
        expect_from_scratch(made_in("/home/me/mine.py"), ())
    expect_from_scratch(made_in("/somewhere/lib/python3.11/site-packages/einops/einops.py"), ())
    expect_from_scratch(made_in("<reference>"), ())
