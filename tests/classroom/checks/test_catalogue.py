"""Every catalogued mistake, made by a learner: the check refuses it and says what it is.

A mistake is words and an edit of the reference. Here each edited reference becomes a function or a
class with the handout's arguments, as a learner hands it in, and goes through `check`. Where a
mistake shows only in what no single call returns, such as a run that was saved and goes on, it goes
straight through the engine.
"""

import inspect
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from attempts.ours import copied

from workbook.classroom.checks import bpe, decoding, optimizer, tokenizer, transformer
from workbook.classroom.checks.checkpointing import CHECKPOINTS
from workbook.classroom.checks.machinery.engine import Exercise, judge
from workbook.classroom.study.verbs import check

model = copied("transformer.model")
nn = copied("transformer.nn")
Copied = copied("tokenization.tokenizer").Tokenizer
END = "<|endoftext|>"

# What a learner hands in, made from an edited reference.


def trainer(edited):
    def train_bpe(input_path, vocab_size, special_tokens):
        text = Path(input_path).read_bytes().decode()
        room = vocab_size - 256 - len(special_tokens)
        case = bpe.Text(text, room, tuple(special_tokens))
        merges = edited(case)
        return dict(enumerate(bpe.vocabulary_of(case, merges))), merges

    return train_bpe


class Kept(SimpleNamespace):
    """What a tokenizer was made from, with the names that the reference reads."""

    def vocab(self):
        return self.held

    @property
    def specials(self):
        return self.special_tokens or ()

    def ids(self):
        return self.ids_of_tokens


def tokenizer_class(encode, decode):
    class Tokenizer(Copied):  # which reads files, and streams
        def __init__(self, vocab, merges, special_tokens=None):
            super().__init__(vocab, merges, special_tokens)
            tokens = None if special_tokens is None else tuple(special_tokens)
            known = tuple(t for t in {END, *(tokens or ())} if t.encode() in {*vocab.values()})
            ids = {token: token_id for token_id, token in vocab.items()}
            for token in tokens or ():
                ids.setdefault(token.encode(), len(ids))
            held = {"held": dict(vocab), "merges": tuple(merges), "known": known}
            self.kept = Kept(**held, special_tokens=tokens, ids_of_tokens=ids)

        def encode(self, text):
            return encode(tokenizer.Call(self.kept, "encode", text))

        def decode(self, ids):
            return decode(tokenizer.Call(self.kept, "decode", list(ids)))

    return Tokenizer


def encoding(edited):
    return tokenizer_class(edited, tokenizer.DECODE.program.edited())


def decoding_ids(edited):
    return tokenizer_class(tokenizer.ENCODE.program.edited(), edited)


def schedule(edited):
    def get_lr(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters):
        step = (it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters)
        return edited.args[0](*step)

    return get_lr


def clipping(edited):
    def clip_gradients(parameters, max_l2_norm):
        generator = not isinstance(parameters, list)
        parameters = list(parameters)
        names = {"parameters": lambda: parameters, "limit": max_l2_norm, "generator": generator}
        edited(SimpleNamespace(**names))

    return clip_gradients


def high(value):
    """The reference computes in float64 where float32 comes in."""
    return value.double() if getattr(value, "dtype", None) == torch.float32 else value


def low(result):
    return result.float() if result.dtype == torch.float64 else result


def softmax(edited):
    return lambda x, dim: low(edited.args[0](high(x), dim))


def attention(edited):
    def scaled_dot_product_attention(Q, K, V, mask=None):
        return low(edited.args[0](high(Q), high(K), high(V), mask))

    return scaled_dot_product_attention


def loss(edited):
    def cross_entropy(logits, targets):
        return low(edited.args[0](high(logits), targets))

    return cross_entropy


def module(base):
    """A class with the parameters of `base`, whose `forward` is the edited reference."""
    names = inspect.signature(base.__init__), inspect.signature(base.forward)

    def made(edited):
        function = edited.args[0]

        class Attempt(base):
            def __init__(self, *sizes, **named):
                super().__init__(*sizes, **named)
                self.settings = names[0].bind(self, *sizes, **named).arguments

            def forward(self, *inputs, **named):
                given = names[1].bind(self, *inputs, **named).arguments
                weights = {name: high(weight) for name, weight in self.named_parameters()}
                values = {**self.settings, **given, **weights, "weights": weights}
                values |= {o: values[c] for o, c in transformer.COURSE.items() if c in values}
                wanted = [name for name in inspect.signature(function).parameters if name in values]
                return low(function(**{name: high(values[name]) for name in wanted}))

            __init__.__signature__, forward.__signature__ = names

        return Attempt

    return made


heads = module(model.MultiHeadSelfAttention)
LEARNERS = {
    "train_bpe": (bpe.BPE, trainer),
    "tokenizer": (tokenizer.ENCODE, encoding),
    "tokenizer, decode": (tokenizer.DECODE, decoding_ids),
    "learning_rate_schedule": (optimizer.SCHEDULE, schedule),
    "gradient_clipping": (optimizer.CLIPPING, clipping),
    "softmax": (transformer.softmax, softmax),
    "scaled_dot_product_attention": (transformer.scaled_dot_product_attention, attention),
    "cross_entropy": (transformer.cross_entropy, loss),
    "linear": (transformer.linear, module(nn.Linear)),
    "embedding": (transformer.embedding, module(nn.Embedding)),
    "rmsnorm": (transformer.rmsnorm, module(nn.RMSNorm)),
    "positionwise_feedforward": (transformer.positionwise_feedforward, module(nn.SwiGLU)),
    "rope": (transformer.rope, module(nn.RotaryPositionalEmbedding)),
    "multihead_self_attention": (transformer.multihead_self_attention, heads),
    "transformer_block": (transformer.transformer_block, module(model.TransformerBlock)),
    "transformer_lm": (transformer.transformer_lm, module(model.TransformerLM)),
}


def counts(probabilities):
    return [round(decoding.DRAWS * share) for share in probabilities]


# What no single call shows goes to the engine as it is: with what the check would have seen.
ENGINE = {
    "checkpointing": (CHECKPOINTS, lambda edited, case: edited(case)),
    "decoding": (decoding.CHAIN, lambda edited, case: edited(case)),
    "decoding, choices": (decoding.CHOICE, lambda edited, case: counts(edited(case))),
    "adamw": (optimizer.ADAMW, lambda edited, case: edited(case)[:1]),
    "tokenizer, streams": (tokenizer.STREAM, lambda edited, case: edited(case)),
}


# These show only in what a learner's function leaves behind, which the reference does not.
BY_HAND = {"A gradient is gone: scale it, and leave it where it is."}


def every_mistake(exercises):
    """Each mistake, with the smallest part that knows it; without STRESS one of the same words."""
    found = []
    known = set()
    for problem, (exercise, _) in exercises.items():
        for mistake in exercise.mistakes:
            alike = {mistake} if "STRESS" in os.environ else {mistake, (problem, mistake.words)}
            if not alike & known and mistake.words not in BY_HAND:
                found.append(pytest.param(problem, mistake, id=f"{problem}: {mistake.words}"))
            known |= alike
    return found


def told_as(exercise: Exercise, mistake, run, told: str) -> bool:
    """Whether the words are the mistake's own, or those of one that gives the same in every case.

    `run` gives what the check sees of an edited reference, with its chance.
    """
    if mistake.words in told:
        return True
    others = [other for other in exercise.mistakes if other.words in told]

    def alike(other, case):
        versions = [exercise.program.edited(each) for each in (mistake, other)]
        try:
            one, two = (exercise.expected(case, version) for version in versions)
        except Exception:
            return False
        return exercise.same(one, two) or exercise.same(one, run(versions[1], case))

    cases = (*exercise.cases, *exercise.corners)
    return any(all(alike(other, case) for case in cases) for other in others)


@pytest.mark.stress
@pytest.mark.parametrize(("problem", "mistake"), every_mistake(LEARNERS))
def test_a_learners_mistake_is_refused_and_named(problem, mistake, judged_here):
    exercise, wrapped = LEARNERS[problem]
    report = check(problem.split(",")[0], wrapped(exercise.program.edited(mistake)))
    assert report.status in ("wrong", "almost"), report
    told = " ".join([report.message, *report.also])
    assert told_as(exercise, mistake, lambda edited, case: edited(case), told), report


@pytest.mark.stress
@pytest.mark.parametrize(("problem", "mistake"), every_mistake(ENGINE))
def test_a_mistake_is_told_by_what_it_leaves_behind(problem, mistake):
    exercise, run = ENGINE[problem]
    findings = judge(replace(exercise, run=run), exercise.program.edited(mistake))
    told = " ".join(wrong.mistake or "" for wrong in findings.wrongs)
    assert findings and told_as(exercise, mistake, run, told), told


@pytest.mark.parametrize("problem", LEARNERS)
def test_what_is_not_edited_is_right(problem, judged_here):
    exercise, wrapped = LEARNERS[problem]
    report = check(problem.split(",")[0], wrapped(exercise.program.edited()))
    assert report.status == "correct", report
