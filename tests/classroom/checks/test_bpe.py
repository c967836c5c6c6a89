"""The check of `train_bpe`: right solutions pass, and each usual mistake is called by its name."""

import multiprocessing
import subprocess
import sys
import unicodedata
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import pytest
import regex
from attempts import bpe_right, bpe_wrong

from workbook.classroom.checks import bpe, pretokens
from workbook.classroom.study.verbs import check
from workbook.tokenization.bpe import train_bpe


@pytest.fixture
def short(monkeypatch, judged_here):
    """No long texts, for what is plain and slow."""
    monkeypatch.setattr(bpe, "long_texts", tuple)


def test_a_solution_may_start_processes():
    assert check("train_bpe", bpe_right.pool).status == "correct"


def test_what_is_right_but_slow_is_almost_right(monkeypatch, judged_here):
    monkeypatch.setattr(bpe.shared, "LONG_SECONDS", 0.001)
    monkeypatch.setattr(pretokens, "STOPPED", 10**6)
    report = check("train_bpe", bpe_right.recount)
    assert report.status == "almost" and "Training is right, but slow: " in report.claim
    assert "s of processor time" in report.claim and "Store each distinct" in report.likely


def test_what_is_far_too_slow_is_stopped(monkeypatch, judged_here):
    monkeypatch.setattr(bpe.shared, "LONG_SECONDS", 0.1)
    report = check("train_bpe", bpe_wrong.WholeText())
    assert report.status == "wrong" and "Training is far too slow" in report.claim, report


@pytest.mark.parametrize("words", bpe_wrong.RESULTS)
def test_a_wrong_form_is_told(words, judged_here):
    report = check("train_bpe", bpe_wrong.returned(words))
    assert report.status == "wrong" and words in report.message, report


def test_what_takes_a_path_only_is_almost_right(short):
    report = check("train_bpe", bpe_right.opens_a_path)
    assert report.status == "almost" and "`Path(input_path)`" in report.likely


def test_corners_are_told_once_for_each_cause(short):
    report = check("train_bpe", bpe_wrong.OnlyEndOfText())
    assert report.status == "almost" and "Only <|endoftext|>" in report.message
    assert "2 corner cases fail" in report.message and len(report.also) == 1


def test_what_is_the_workbooks_own_is_not_from_scratch_yet(short):
    report = check("train_bpe", train_bpe)
    assert report.status == "almost" and "from scratch" in report.message


def test_the_failing_input_is_the_smallest_one(judged_here):
    rows = dict(check("train_bpe", bpe_wrong.FirstSeen()).rows)
    assert "room for 1 merge; the file holds" in rows["input"] and len(rows["input"]) < 120, rows
    assert rows["expected"].count("(b'") == rows["got"].count("(b'") == 1


def test_a_crash_names_the_line_and_what_the_failing_inputs_share(short):
    def needs_special(input_path, vocab_size, special_tokens):
        marker = special_tokens[0]
        return bpe_right.indexed(input_path, vocab_size, [marker, *special_tokens[1:]])

    report = check("train_bpe", needs_special)
    assert report.status == "almost" and "special_tokens[0]" in dict(report.rows)["got"]
    assert "any number of them or none" in report.likely


def test_a_wrong_pair_gets_no_cause_that_is_not_its_own():
    case = bpe.Text("ab abc" * 2, 2)
    right = bpe.train(case)
    cases = {"no longer occurs": (b"b", b"c"), "was changed before": (b"A", b"B")}
    cases["are never neighbours"] = (b"b", b" ")
    for words, pair in cases.items():
        likely = bpe.BPE.report(case, right, [right[0], pair]).mistake
        assert words in likely, (words, likely)


@pytest.mark.parametrize("change", [str.lower, partial(unicodedata.normalize, "NFD")])
def test_text_that_was_changed_is_told(change, judged_here):
    class Changed(bpe_wrong.Plain):
        def pretokens(self, text):
            return super().pretokens(change(text))

    assert "as by `lower()`" in check("train_bpe", Changed()).likely


def test_groups_of_a_pattern_are_told(judged_here):
    class Groups(bpe_wrong.Plain):
        def pretokens(self, text):
            parts = self.split(text)
            return [token for part in parts for token in regex.findall(self.pattern, part)]

    for Groups.pattern in (bpe_wrong.GPT2.replace("(?:", "("), r"( ?\w+)|(\s+)"):
        assert "`(?:...)`" in check("train_bpe", Groups()).likely


def test_an_endless_loop_is_stopped(monkeypatch, judged_here):
    monkeypatch.setattr(bpe, "QUICK", 0.2)

    def endless(input_path, vocab_size, special_tokens):
        while True:
            pass

    report = check("train_bpe", endless)
    assert "stopped" in report.claim and "never ends" in report.likely


def dies():
    raise ValueError("on purpose")


def broken_pool(input_path, vocab_size, special_tokens):
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, context, initializer=dies) as pool:
        list(pool.map(abs, [1]))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_workers_that_die_are_told():
    assert "worker processes die" in check("train_bpe", broken_pool).likely


def test_who_takes_long_to_start_is_asked_less(monkeypatch, judged_here):
    monkeypatch.setattr(bpe, "SLOW", 0.0)
    assert check("train_bpe", bpe_right.indexed).status == "correct"


def test_a_script_without_a_guard_starts_no_check_in_its_workers(tmp_path):
    (tmp_path / "script.py").write_text(
        "import multiprocessing\n"
        "from workbook.classroom.study.verbs import check\n"
        "def train(input_path, vocab_size, special_tokens, pools=[]):\n"
        "    if not pools:\n"
        "        pools.append(multiprocessing.get_context('spawn').Pool(1))\n"
        "        pools[0].map(abs, [1])\n"
        "    return {}, []\n"
        "print(check('train_bpe', train).status)\n"
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True)
    assert done.stdout.split() == [b"wrong"]


def test_the_reference_agrees_with_the_package(tmp_path):
    for case in (*bpe.BPE.cases, *bpe.CORNERS):
        path = tmp_path / "text.txt"
        path.write_bytes(case.text.encode())
        _, merges = train_bpe(path, case.vocab_size, case.special_tokens)
        assert merges == bpe.train(case)
