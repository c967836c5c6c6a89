"""Plain slips, which end in an error: a beginner is told which it is, not only where."""

import math
import pickle
from inspect import getsource

import numpy
import pytest
import torch
from IPython.core.autocall import ZMQExitAutocall
from made_repositories import module

from workbook.classroom.checks.machinery.loading import load_file
from workbook.classroom.checks.machinery.transfer import pack
from workbook.classroom.checks.machinery.verdicts import Prose, contrast, failure
from workbook.classroom.study.verbs import check


def made(source):
    """What a learner has after a cell, in a notebook whose first cell did not run in full."""
    names = {"__name__": "__main__", "torch": torch, "np": numpy, "math": math, "nn": torch.nn}
    exec(source, names)
    return names


IN_SOFTMAX = [  # what `softmax(x, dim)` returns, and what is said
    ("torch.exxp(x)", "is `exp` meant?"),
    ("sizes['hight'] * x", "is `height` meant?"),
    ("np.max(x, axis=dim, keepdims=True)", "NumPy's functions are no good for tensors"),
    ("math.exp(x)", "the functions of `math` take"),
    ("regex.findall('a', x)", "Nothing has imported `regex`: run the notebook's first code cell"),
    ("__import__('re').compile(r'\\p{L}')", "import `regex`"),
    ("[bytes([b]) for b in 'text']", "`text.encode()` gives its bytes"),
    ("print(x).shape", "This is None"),
    ("[x].grad", "of another type than the line expects"),
    ("[sizes.pop(name) for name in sizes]", "loop over `list(...)` of it"),
    ("torch.sqrt(2)", "Torch's functions take tensors"),
    ("x[: len(x) / 2]", "`//` gives one, and `/` a float"),
    ("x[x.float()]", "Indices are tensors of integers"),
    ("x / x.sum", "call it, with parentheses"),
    ("x.shape(0)", "is no function: `[...]` takes an item"),
    ("[0 for a, b in [(1, 2, 3)]]", "has more parts, or fewer"),
    ("'text'.decode()", "A str is text already"),
    ("(1, 2).append(3)", "of another type than the line expects"),
    ("', '.join([1])", "This line mixes two types"),
    ("exit()", "`exit()` and `quit()` end Python itself"),
    ("helper(x, dim)", "is `self` the first of a method's?"),
    ("torch.topk(x, 0.5)", "An argument of this call has the wrong type: print it."),
    ("'a' in 3", "`in` looks into a container, and this is none: print it."),
]


@pytest.mark.parametrize(("code", "words"), IN_SOFTMAX)
def test_a_line_that_fails_is_told_its_slip(code, words, judged_here):
    body = "def helper(x): ...\ndef softmax(x, dim):\n    sizes = {'height': 1}\n    return "
    report = check("softmax", made(body + code)["softmax"])
    assert report.status == "wrong" and words in report.likely, report


AS_A_SCRIPT = """
def softmax(x, dim):
    return x.softmax(args.dim)

if __name__ == "__main__":
    args = None
"""


def test_what_only_a_script_sets_is_told_as_that(tmp_path, judged_here):
    file = tmp_path / "mine.py"
    file.write_text(AS_A_SCRIPT)
    report = check("softmax", load_file(file, "mine").softmax)
    assert "`args` is there only if the file runs as a script: pass it in." in report.likely, report


LACKING = """
def softmax(x, dim):
    {0}

class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self.vocab = vocab
    def encode(self, text):
        {0}
"""


@pytest.mark.parametrize("name", ["softmax", "Tokenizer"])
def test_what_this_computer_lacks_judges_nothing(name, judged_here):
    for line in ("import no_such", "raise RuntimeError('NVTX functions not installed')"):
        report = check(name.lower(), made(LACKING.format(line))[name])
        assert report.status == "not attempted" and "This computer lacks" in report.claim, report


OF_MPS = "Could not run 'aten::empty' with arguments from the 'MPS' backend. This could be because"


def test_what_another_device_needs_is_told_in_one_sentence_with_the_remedy(judged_here):
    code = LACKING.format(f"raise RuntimeError({OF_MPS + 70 * ' CPU: registered'!r})")
    report = check("softmax", made(code)["softmax"])
    assert "from the 'MPS' backend, at line 3, in softmax" in report.claim, report
    assert report.claim.endswith("Make tensors on the device of the inputs, `device=x.device`.")


NORM = getsource(module("flat", "cs336_basics/model.py").RMSNorm)
IN_NORM = [  # what is changed in RMSNorm, and what is said
    ("def __init__", "def _init_", "two underscores on each side; is `_init_` meant?"),
    ("def __init__", "def made", "The class has no `__init__` for them"),
    ("(self, x:", "(x:", "The first parameter of each method is `self`"),
    ("super().__init__()", "super().__init__", "Begin `__init__` with `super().__init__()`"),
    ("* self.weight", "* weight", "`weight` belongs to the object: write `self.weight`."),
    ("dtype=dtype))", "dtype=dtype))\n        return eps", "has no `return`"),
]


@pytest.mark.parametrize(("old", "new", "words"), IN_NORM)
def test_a_slip_in_a_class_is_told(old, new, words, judged_here):
    report = check("rmsnorm", made(NORM.replace(old, new))["RMSNorm"])
    assert report.status == "wrong" and words in report.message, report


def test_the_exit_of_a_kernel_travels_as_that_of_python():
    function = made("def ends():\n    exit()")["ends"]
    function.__globals__["exit"] = ZMQExitAutocall(ip=(n for n in ()))  # no shell can be copied
    (ends,) = pickle.loads(pack((function,))["pickled"])
    with pytest.raises(SystemExit):
        ends()


def test_words_are_shown_whole_and_without_the_colours_of_a_terminal():
    left = Prose("0.1234, " * 9 + "1")
    right = Prose("0.1234, " * 9 + "2")
    assert contrast(left, right) == (left, right)
    assert failure(ValueError("\x1b[1mbold\x1b[0m")).startswith("ValueError: bold")
    several = TypeError("f() got (None),\n but expected one of:\n * (Tensor input)\n")
    assert failure(several) == "TypeError: f() got (None)"
