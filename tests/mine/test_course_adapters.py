"""The adapters that are written for right attempts give what ours give, at other sizes."""

import sys
from functools import cache
from types import ModuleType, SimpleNamespace

import adapter_runs
import pytest
from attempts import (
    bpe_right,
    checkpointing,
    data_loading,
    optimizer_adamw_right,
    optimizer_schedule_and_clipping,
    tokenizer_right,
    transformer_lists,
    transformer_right,
    transformer_right_functions,  # noqa: F401 - these fill the lists
    transformer_right_heads,
    transformer_right_shapes,  # noqa: F401
    transformer_right_strict,  # noqa: F401
)

from workbook.checks.verdicts import NotAttempted, Wrong
from workbook.mine import course_adapters
from workbook.mine.course_adapters import ADAPTERS, Parts, written

PAIRS = [pair for pair in checkpointing.RIGHT if isinstance(pair, tuple)]
RIGHT = [
    # What is compiled takes as long as all others together.
    *(pair for pair in transformer_lists.RIGHT if pair[1].__name__ != "Compiled"),
    # One that is made anew for each batch has a fixed seed, and is no function of the data.
    *(("data_loading", each) for each in data_loading.RIGHT if each is not data_loading.Batches),
    *(("checkpointing", each) for each in PAIRS),
    *(("adamw", each) for each in optimizer_adamw_right.RIGHT),
    *(("learning_rate_schedule", e) for e in optimizer_schedule_and_clipping.RIGHT_SCHEDULES),
    *(("gradient_clipping", each) for each in optimizer_schedule_and_clipping.RIGHT_CLIPS),
    *(("tokenizer", each) for each in tokenizer_right.RIGHT),
    *(("train_bpe", each) for each in bpe_right.RIGHT),
]
REFUSED = {  # for these forms an adapter is written by hand
    "AsksItsRope": "max_seq_len",  # of a RoPE that is another class than the one that was solved
    "OneMatrixAHead": "No way of loading its weights",  # weights with an axis for the heads
    "OfDict": "no annotation names their class",  # settings
    "Course": "does not return a pair",  # a trainer that keeps what it has learnt
    "Statics": "the function `train`",  # of a class of static methods
}


class Kept(Parts):
    """Parts that are not imported from files, but at hand."""

    def __init__(self, problem, attempt):
        super().__init__([problem])
        self.objects = {
            "rope": (transformer_right.RotaryPositionalEmbedding,),
            problem: attempt if isinstance(attempt, tuple) else (attempt,),
        }
        home = ModuleType(f"kept.{problem}")
        for i, each in enumerate(self.objects[problem]):
            name = getattr(each, "__name__", "")
            setattr(home, name if name.isidentifier() else f"own_{i}", each)
        sys.modules.update({"kept": ModuleType("kept"), home.__name__: home})
        attempts = {n: m for n, m in sys.modules.items() if n.startswith(("attempts.", "copied_"))}
        self.own_homes = {home.__name__: home}
        self.homes = {**self.own_homes, **attempts}

    def of(self, problem):
        if problem not in self.objects:
            raise NotAttempted
        return self.objects[problem]


@cache
def ours(name, folder):
    return adapter_runs.result(name, adapter_runs.ours(), folder)


def run(texts, name, folder):
    namespace = {"torch": adapter_runs.torch}
    for text in texts:
        exec(text, namespace)
    return adapter_runs.result(name, SimpleNamespace(**namespace), folder)


def test_every_adapter_is_tried():
    assert sorted(ADAPTERS) == sorted(adapter_runs.NAMES)
    assert all(isinstance(each, list) and each for each in adapter_runs.CALLS.values())


@pytest.mark.parametrize("name", [name for name, each in ADAPTERS.items() if name != "run_silu"])
def test_the_adapters_of_right_attempts_give_what_ours_give(name, tmp_path):
    problem, seen, failures = ADAPTERS[name].problem, 0, []
    beside = [each for each in ADAPTERS if ADAPTERS[each].problem == problem == "checkpointing"]
    for attempt in [each for other, each in RIGHT if other == problem]:
        label = getattr(attempt, "__name__", repr(attempt))
        try:
            parts = Kept(problem, attempt)
            texts = [written(each, parts)[0] for each in dict.fromkeys([name, *beside])]
            got = run(texts, name, tmp_path)
            seen += 1
            if not adapter_runs.alike(ours(name, tmp_path), got):
                failures.append((label, texts, got))
        except (Wrong, NotAttempted) as refused:
            if REFUSED.get(label, "-") not in f"{refused} {getattr(refused, 'rows', '')}":
                failures.append((label, str(refused)))
    assert seen > 1 and failures == [], failures


def test_a_silu_beside_the_layer_is_found(tmp_path):
    parts = Kept("positionwise_feedforward", transformer_right.SwiGLU)
    text, _ = written("run_silu", parts)
    assert "import silu" in text
    assert adapter_runs.alike(ours("run_silu", tmp_path), run([text], "run_silu", tmp_path))
    parts.homes = parts.own_homes
    with pytest.raises(Wrong, match="None of your files has a working `silu`"):
        written("run_silu", parts)


def test_code_is_plain():
    parts = Kept("linear", transformer_right.LinearOutFirst)
    parts.homes = parts.own_homes
    text, said = written("run_linear", parts)
    assert said == "" and text == (
        "def run_linear(d_in, d_out, weights, in_features):\n"
        "    from kept.linear import LinearOutFirst\n"
        "\n"
        "    module = LinearOutFirst(dim_out=d_out, dim_in=d_in)\n"
        '    module.load_state_dict({"weight": weights})\n'
        "    return module(in_features)\n"
    )


def test_a_wrong_part_has_no_adapter():
    class Halved(transformer_right_heads.Linear):
        def forward(self, x):
            return super().forward(x) / 2

    with pytest.raises(Wrong, match="expected results"):
        written("run_linear", Kept("linear", Halved))
    assert course_adapters.calling.call.__module__ == "workbook.checks.verdicts"  # put back
