"""The registry of the assignment's 38 problems, in the order of the handout, for both editions."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from workbook.config import EDITIONS
from workbook.study.prompts import PROMPTS


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem. What depends on the edition is a dict with a key for each edition."""

    id: str  # as edition 2025 spells it
    ids: dict[str, str]  # by edition
    title: str
    chapter: int
    points: dict[str, int | None]  # by edition; None: the handout prints none
    kind: Literal["code", "written"]
    parts: tuple[str, ...]  # ("a", "b"); () where the problem has none
    notebook: str  # such as "02_bpe"
    sections: dict[str, str | None]  # of the handout, by edition; None: not known to us
    asks_corpora: tuple[str, ...]  # of "tinystories" and "owt"
    hand_in: str  # what `check` takes for a code problem, in words; "" for a written one

    @property
    def prompt(self) -> dict[str, str]:
        """What is asked, in our own words, by part; under "" what concerns the whole problem."""
        return PROMPTS[self.id]


def _problem(
    id: str,
    title: str,
    points: int | tuple[int | None, int | None],
    section: str,
    parts: str = "",
    *,
    chapter: int,
    notebook: str,
    asks: str = "",
    hand_in: str = "",
    id_2026: str | None = None,
    section_2026: str | None = None,
) -> Problem:
    """One row of the table: `points` and `section` are the 2025 handout's, or a pair of both."""
    both_points = points if isinstance(points, tuple) else (points, points)
    return Problem(
        id=id,
        ids=dict(zip(EDITIONS, (id, id_2026 or id), strict=True)),
        title=title,
        chapter=chapter,
        points=dict(zip(EDITIONS, both_points, strict=True)),
        kind="code" if hand_in else "written",
        parts=tuple(parts),
        notebook=notebook,
        sections=dict(zip(EDITIONS, (section, section_2026), strict=True)),
        asks_corpora=tuple(asks.split()),
        hand_in=hand_in,
    )


def _chapter_2() -> list[Problem]:
    unicode = {"chapter": 2, "notebook": "01_unicode"}
    bpe = {"chapter": 2, "notebook": "02_bpe"}
    train = "the function train_bpe(input_path, vocab_size, special_tokens)"
    tokenizer = "the class Tokenizer(vocab, merges, special_tokens=None)"
    return [
        _problem("unicode1", "The character with number 0", 1, "2.1", "abc", **unicode),
        _problem("unicode2", "From characters to bytes", 3, "2.2", "abc", **unicode),
        _problem("train_bpe", "Train a byte-pair encoding", 15, "2.5", hand_in=train, **bpe),
        _problem(
            "train_bpe_tinystories", "A tokenizer for simple stories", 2, "2.5", "ab",
            asks="tinystories", **bpe,
        ),
        _problem(
            "train_bpe_expts_owt", "A tokenizer for the web", 2, "2.5", "ab",
            asks="tinystories owt", **bpe,
        ),
        _problem("tokenizer", "Encode and decode", 15, "2.6", hand_in=tokenizer, **bpe),
        _problem(
            "tokenizer_experiments", "Two tokenizers at work", 4, "2.7", "abcd",
            asks="tinystories owt", **bpe,
        ),
    ]  # fmt: skip


def _chapter_3() -> list[Problem]:
    model = {"chapter": 3, "notebook": "03_transformer"}
    rope = (
        "the class RotaryPositionalEmbedding(theta, d_k, max_seq_len), called with (x, positions)"
    )
    attention = "the function scaled_dot_product_attention(Q, K, V, mask)"
    heads = "the class MultiHeadSelfAttention(d_model, num_heads, max_seq_len=None, theta=None)"
    block = "the class TransformerBlock(d_model, num_heads, d_ff, max_seq_len=None, theta=None)"
    language_model = (
        "the class TransformerLM(vocab_size, context_length, d_model, num_layers, num_heads, d_ff,"
        " rope_theta)"
    )
    return [
        _problem(
            "linear", "A linear layer", 1, "3.4.2",
            hand_in="the class Linear(in_features, out_features)", **model,
        ),
        _problem(
            "embedding", "A table of vectors", 1, "3.4.3",
            hand_in="the class Embedding(num_embeddings, embedding_dim)", **model,
        ),
        _problem(
            "rmsnorm", "Keep vectors at one length", 1, "3.5.1",
            hand_in="the class RMSNorm(d_model, eps=1e-5)", **model,
        ),
        _problem(
            "positionwise_feedforward", "The gated feed-forward layer", 2, "3.5.2",
            hand_in="the class SwiGLU(d_model, d_ff)", **model,
        ),
        _problem(
            "rope", "Turn by position", 2, "3.5.3", section_2026="3.4.3", hand_in=rope, **model
        ),
        _problem(
            "softmax", "Scores to probabilities", 1, "3.5.4",
            hand_in="the function softmax(x, dim)", **model,
        ),
        _problem(
            "scaled_dot_product_attention", "Attention", 5, "3.5.4", hand_in=attention, **model
        ),
        _problem(
            "multihead_self_attention", "Many heads, no look ahead", 5, "3.5.5",
            hand_in=heads, **model,
        ),
        _problem("transformer_block", "One block", 3, "3.6", hand_in=block, **model),
        _problem("transformer_lm", "The whole model", 3, "3.6", hand_in=language_model, **model),
        _problem(
            "transformer_accounting", "What a model costs", 5, "3.6", "abcde",
            chapter=3, notebook="04_accounting",
        ),
    ]  # fmt: skip


def _chapter_4() -> list[Problem]:
    optimizer = {"chapter": 4, "notebook": "05_optimizer"}
    adamw = "the class AdamW(params, lr, betas, eps, weight_decay)"
    schedule = (
        "the function schedule(it, max_learning_rate, min_learning_rate, warmup_iters,"
        " cosine_cycle_iters)"
    )
    return [
        _problem(
            "cross_entropy", "The loss", (None, 1), "4.1", chapter=4, notebook="03_transformer",
            hand_in="the function cross_entropy(logits, targets)",
        ),
        _problem("learning_rate_tuning", "Three learning rates", 1, "4.2.1", **optimizer),
        _problem("adamw", "The optimizer", 2, "4.3", hand_in=adamw, **optimizer),
        _problem(
            "adamwAccounting", "What training costs", 2, "4.3", "abcd",
            id_2026="adamw_accounting", chapter=4, notebook="04_accounting",
        ),
        _problem(
            "learning_rate_schedule", "Up, then down a cosine", (None, 1), "4.4",
            hand_in=schedule, **optimizer,
        ),
        _problem(
            "gradient_clipping", "A limit for gradients", 1, "4.5",
            hand_in="the function clip(parameters, max_l2_norm)", **optimizer,
        ),
    ]  # fmt: skip


def _chapters_5_and_6() -> list[Problem]:
    training = {"chapter": 5, "notebook": "06_training"}
    decode = (
        "the function decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0,"
        " end_id=None)"
    )
    return [
        _problem(
            "data_loading", "Batches from one long line of ids", 2, "5.1",
            hand_in="the function get_batch(dataset, batch_size, context_length, device)",
            **training,
        ),
        _problem(
            "checkpointing", "Stop and go on", 1, "5.2",
            hand_in="the pair (save_checkpoint, load_checkpoint)", **training,
        ),
        _problem(
            "training_together", "The training script", 4, "5.3",
            hand_in="the script itself, which no check can judge", **training,
        ),
        _problem(
            "decoding", "Write text", 3, "6", hand_in=decode, chapter=6, notebook="07_generation"
        ),
    ]  # fmt: skip


def _chapter_7() -> list[Problem]:
    runs = {"chapter": 7, "notebook": "08_experiments"}
    stories = {**runs, "asks": "tinystories"}
    web = {**runs, "asks": "owt"}
    return [
        _problem("experiment_log", "Keep a log", 3, "7.1", **runs),
        _problem("learning_rate", "Find the learning rate", 3, "7.2", "ab", **stories),
        _problem("batch_size_experiment", "Vary the batch size", 1, "7.2", **stories),
        _problem(
            "generate", "Read what it writes", 1, "7.2", chapter=7, notebook="07_generation",
            asks="tinystories",
        ),
        _problem("layer_norm_ablation", "Take the norms away", 1, "7.3", **stories),
        _problem("pre_norm_ablation", "Norm after, not before", 1, "7.3", **stories),
        _problem("no_pos_emb", "No positions at all", 1, "7.3", **stories),
        _problem("swiglu_ablation", "No gate", 1, "7.3", **stories),
        _problem("main_experiment", "The same model on the web", 2, "7.4", **web),
        _problem("leaderboard", "The best loss in the time", 6, "7.5", **web),
    ]  # fmt: skip


PROBLEMS: dict[str, Problem] = {
    problem.id: problem
    for chapter in (_chapter_2, _chapter_3, _chapter_4, _chapters_5_and_6, _chapter_7)
    for problem in chapter()
}
_BY_ANY_ID = {id: problem for problem in PROBLEMS.values() for id in problem.ids.values()}


def get(id: str) -> Problem:
    """The problem with this id, in the spelling of either edition."""
    if not isinstance(id, str):
        raise ValueError(f"expected a problem's id such as 'train_bpe', got a {type(id).__name__}")
    if id in _BY_ANY_ID:
        return _BY_ANY_ID[id]
    near = get_close_matches(id.lower(), _BY_ANY_ID, n=1, cutoff=0.0)
    raise ValueError(f"no problem is called {id!r}; did you mean {near[0]!r}?")


def part_of(problem: Problem, part: str | None) -> str | None:
    """`part` as the problem knows it: "A" and "(a)" are "a", and "" is None."""
    if part is not None and not isinstance(part, str):
        raise ValueError(f"expected a part such as 'a', got a {type(part).__name__}")
    name = (part or "").strip("() ").lower()
    if not name:
        return None
    if name in problem.parts:
        return name
    has = f"the parts {', '.join(problem.parts)}" if problem.parts else "no parts"
    raise ValueError(f"{problem.id} has {has}; there is no part {part!r}")
