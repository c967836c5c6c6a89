"""Mistakes are planted into right code of many styles, seen, found and counted."""

import ast
import inspect
import os
import re
from itertools import islice
from random import Random

import pytest
from attempts import steps, styles, transformer_right
from nbclient import execute
from nbformat.v4 import new_code_cell, new_notebook

from workbook import check, harden
from workbook.classroom import cli, problems
from workbook.classroom.checks.machinery.mutants import planted
from workbook.classroom.mine import hardening
from workbook.classroom.study import progress

STRESS = bool(os.environ.get("STRESS"))
STYLES, MISTAKES = (5, 8) if STRESS else (1, 1)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study folder in which RMSNorm is solved, and that we are in."""
    (tmp_path / "study" / ".workbook").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "study")
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    assert check("rmsnorm", transformer_right.RMSNorm).status == "correct"
    return tmp_path / "study"


def planted_in(study):
    return progress.Progress(study).notes(hardening.Hunt)["rmsnorm"]


@pytest.mark.slow
def test_a_mistake_is_planted_seen_named_and_counted(study, capsys):
    shown = str(harden("rmsnorm"))
    right = (study / "mine" / "rmsnorm.py").read_text().splitlines()
    copy = (study / "broken" / "rmsnorm.py").read_text().splitlines()
    hunt = planted_in(study)
    assert "a mistake is in the copy" in shown and "expected" in shown and "6. Test" in shown
    assert "Likely" not in shown and hunt.changed not in shown
    differ = [n for n, pair in enumerate(zip(right, copy, strict=False), 1) if pair[0] != pair[1]]
    assert hunt.first in differ or len(right) != len(copy)
    wrong = str(harden("rmsnorm", line=2))
    assert f"not in line 2. {hunt.claim}" in wrong and "2. Shrink" in wrong
    found = str(harden("rmsnorm", line=hunt.first))
    assert "✓ harden rmsnorm: found" in found and hunt.original in found
    harden("rmsnorm")
    assert planted_in(study).changed != hunt.changed
    assert cli.main(["study"]) == 0
    printed = capsys.readouterr().out
    assert "Planted mistakes that you found (`harden`): rmsnorm 1." in printed
    assert "Solved: 1 of" in printed  # as before: it is worth no points


@pytest.mark.slow
def test_a_copy_that_is_mended_counts_as_found_and_is_never_lost(study):
    harden("rmsnorm")
    copy = study / "broken" / "rmsnorm.py"
    planted = planted_in(study)
    copy.write_text(planted.source + "\n1 / 0\n")
    assert "cannot be imported any more: ZeroDivisionError" in str(harden("rmsnorm"))
    copy.write_text("# my notes\n" + planted.source)
    assert "not in line 1" in str(harden("rmsnorm", line=1))
    mended = (study / "mine" / "rmsnorm.py").read_text() + "# mended\n"
    copy.write_text(mended)
    assert ": found" in str(harden("rmsnorm"))
    harden("rmsnorm")
    assert (study / "broken" / "rmsnorm-1.py").read_text() == mended


def test_what_cannot_be_hardened_is_said(study, capsys):
    harden("rope")
    said = capsys.readouterr().out
    assert "no code of yours is kept for rope" in said and "Write it like this" not in said
    for written in ("unicode1", "encode_utf8"):
        harden(written)
        said = capsys.readouterr().out
        assert f"{written} has no code to harden" in said
        assert 'Write it like this: `harden("rope", line=12)`' in said
    harden("rmsnorm", line=3)
    said = capsys.readouterr().out
    assert 'no mistake is planted there now; `harden("rmsnorm")` plants one' in said
    assert "Write it like this" not in said
    for broken in ("[" * 100_000, '{"rmsnorm": {"found": 3}}', '{"rmsnorm": [1]}'):
        (study / ".workbook" / "harden.json").write_text(broken)
        assert hardening.found_mistakes(study) == []


TEST_OF_PAIRS = """def test_pairs(count_pairs):
    assert count_pairs({(b"a", b"a", b"a"): 5}) == {(b"a", b"a"): 10}
"""
PLAYED = [  # cells, and what each shows
    ("import shutil, sys, torch\nfrom torch import nn\nfrom workbook import *", ""),
    (inspect.getsource(transformer_right.RMSNorm), ""),
    ('check("rmsnorm", RMSNorm)', "✓ rmsnorm: correct"),
    ('harden("rmsnorm")', "a mistake is in the copy.*6. Test"),
    ("from broken import rmsnorm as copy\ncopy.RMSNorm(4)(torch.ones(4))", "tensor"),
    ('harden("rmsnorm", line=2)', "not in line 2.*2. Shrink"),
    ("shutil.copy('mine/rmsnorm.py', 'broken')", ""),  # it is mended
    ('harden("rmsnorm")', ": found"),
    ('harden("rmsnorm")', "a mistake is in the copy"),
    ("recall()", "1. rmsnorm: "),
    ("recall(-1)", "rmsnorm: ✗ not -1, but.*Again: rmsnorm on"),
    ('predict("the loss of a new model", 7.6)', "Noted for the loss of a new model: 7.6"),
    ('predict("the loss of a new model", measured=9.5)', "you guessed 7.6, it is 9.5; ratio 0.8"),
    ("calibration()", "Guesses so far: 1. .* a factor of 1.25.*image/png"),
    (TEST_OF_PAIRS, ""),
    ('examples("count_pairs", test_pairs)', "✓ test of count_pairs.*two right.*Kept as"),
    ("from collections import Counter\nfrom itertools import pairwise", ""),
    (inspect.getsource(steps.count_pairs), ""),
    ('check("count_pairs", count_pairs)', "✓ count_pairs: correct"),
    ("!{sys.executable} -m workbook study", r"Left: about .*\(`harden`\): rmsnorm 1\."),
]


@pytest.mark.slow
def test_all_that_makes_one_learn_is_played_in_a_kernel(study):
    with progress.Progress(study).changing("rmsnorm", None) as entry:
        entry.day = "2020-01-01"
    cells = [new_code_cell(source) for source, _ in PLAYED]
    execute(new_notebook(cells=cells), cwd=study)
    for cell, (source, shown) in zip(cells, PLAYED, strict=True):
        assert re.search(shown, str(cell.outputs), re.DOTALL), source


SOURCE = """def scaled(x, gain, dim=-1):
    high = x.float()  # keeps the é
    high = high - gain / 2
    high *= "a" == 'a'
    return f"{-x}", (high * gain).sum(dim, keepdim=True)[1:]
"""
SLIPS = {  # a piece of the source, and what people write there by mistake
    ".float()": "",
    " / 2": "",
    "high - gain": "high + gain",
    "gain / 2": "2 / gain",
    "dim=-1": "dim=1",
    "[1:]": "[2:]",
    "(dim, keep": "(gain, keep",
    ", keepdim=True": "",
    "    high = high - gain / 2\n": "",
    "(high * gain).sum": "high.sum",
    "sum(": "mean(",
}


def test_the_slips_of_people_are_planted_and_all_else_stays_as_it_was():
    mutants = [*planted(SOURCE, Random(0))]
    sources = {mutant.source for mutant in mutants}
    assert [old for old, new in SLIPS.items() if SOURCE.replace(old, new) not in sources] == []
    assert not any("dim=-0" in source or "high = high\n" in source for source in sources)
    for mutant in mutants:
        ast.parse(mutant.source)
        before = SOURCE.splitlines()
        after = mutant.source.splitlines()
        assert before[: mutant.first - 1] == after[: mutant.first - 1]
        assert SOURCE.endswith("\n".join(after[mutant.last :]) + "\n")


@pytest.mark.slow
def test_a_strangers_model_shows_the_curves_of_two_runs(study):
    shown = str(harden("stranger"))
    assert "The copy (broken/stranger.py: TransformerLM) differs from ours at step" in shown
    ours, copys = re.findall("loss, .*`(.*)`", shown)
    assert len(ours) == len(copys) == 21


@pytest.mark.slow
@pytest.mark.parametrize("problem", [each.id for each in problems.PROBLEMS.values() if each.form])
def test_different_mistakes_can_be_planted_into_each_style(problem):
    details = problems.with_id(problem)
    rich = 0
    for source in styles.kept(problem):
        is_right = hardening._checked(details, source).status in ("correct", "almost")
        hunts = islice(hardening.mistakes_in(details, source), MISTAKES) if is_right else ()
        rich += len({hunt.changed for hunt in hunts}) == MISTAKES
        if rich == STYLES:
            return
    pytest.fail(f"{rich} styles of {STYLES} can have {MISTAKES} mistakes")
