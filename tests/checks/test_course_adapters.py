"""The adapters that are written for right attempts give what ours give, at other sizes."""

import sys
from functools import cache
from types import ModuleType, SimpleNamespace

import adapter_runs
import our_adapters
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

from workbook.checks import course_adapters
from workbook.checks.course_adapters import ADAPTERS, Parts, written
from workbook.checks.verdicts import NotAttempted, Wrong

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
# Of a RoPE that is another class than the one that was solved.
REFUSED = {"AsksItsRope": "max_seq_len"}


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


class Static:
    @staticmethod
    def silu(x):
        return x * x.sigmoid()


@cache
def ours(name, folder):
    return adapter_runs.result(name, our_adapters, folder)


def run(texts, name, folder):
    namespace = {"torch": adapter_runs.torch}
    for text in texts:
        exec(text, namespace)
    return adapter_runs.result(name, SimpleNamespace(**namespace), folder)


def test_every_adapter_is_tried():
    assert sorted(ADAPTERS) == sorted(adapter_runs.NAMES)
    assert all(isinstance(each, list) and each for each in adapter_runs.CALLS.values())


@pytest.mark.parametrize("name", [name for name, each in ADAPTERS.items() if each.problem])
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
    with pytest.raises(Wrong, match="None of your files has a function"):
        written("run_silu", parts)


def test_a_static_method_is_found(monkeypatch):
    monkeypatch.setattr(Static, "__module__", "kept.positionwise_feedforward")
    parts = Kept("positionwise_feedforward", Static)
    parts.homes = parts.own_homes
    text, _ = written("run_silu", parts)
    assert "return Static.silu(in_features)" in text


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


class OfSettings(transformer_right_heads.MultiHeadSelfAttention):
    def __init__(self, cfg):
        super().__init__(cfg.n_embd, cfg.n_head, cfg.block_size, cfg.rope_theta)
        self.cfg = cfg

    def split(self, x):
        return x.unflatten(-1, (self.cfg.num_heads, -1)).transpose(-2, -3)


class OfDict(transformer_right_heads.MultiHeadSelfAttention):
    def __init__(self, config):
        length, theta = config["max_seq_len"], config.get("theta")
        super().__init__(config["d_model"], config["num_heads"], length, theta)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (OfSettings, "n_embd=d_model, n_head=num_heads, block_size=max_seq_len, rope_theta=theta, "
         "num_heads=num_heads"),
        (OfDict, '"max_seq_len": max_seq_len, "theta": theta, "d_model": d_model, '),
    ],
)  # fmt: skip
def test_settings_are_made_with_what_is_asked_of_them(kind, code, tmp_path):
    name = "run_multihead_self_attention_with_rope"
    text, _ = written(name, Kept("multihead_self_attention", kind))
    assert code in " ".join(text.split())
    assert adapter_runs.alike(ours(name, tmp_path), run([text], name, tmp_path))


def test_a_wrong_part_has_no_adapter():
    class Halved(transformer_right_heads.Linear):
        def forward(self, x):
            return super().forward(x) / 2

    with pytest.raises(Wrong, match="expected results"):
        written("run_linear", Kept("linear", Halved))
    assert course_adapters.calling.call.__module__ == "workbook.checks.verdicts"  # put back
