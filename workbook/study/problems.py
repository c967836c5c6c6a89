"""The 38 problems of the assignment, for both editions: one record each, in the handout's order.

A record is all that is known about a problem: what is asked and handed in, the hints, what an
answer must contain, and where its check is. A new problem is one more record.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Literal

from workbook.config import EDITIONS


@dataclass(frozen=True)
class Signature:
    """What is handed in for a code problem: its name, and its parameters as in Python.

    `called` are the parameters of the object's own call, for a class whose instances are called.
    """

    kind: Literal["function", "class", "script"]
    name: str = ""
    parameters: str = ""
    called: str = ""

    def __str__(self) -> str:
        call = f"{self.name}({self.parameters})"
        return f"{call}, called with ({self.called})" if self.called else call


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What a written answer must contain beyond its words, as far as the answer itself shows it."""

    figure: bool = False
    quantities: tuple[str, ...] = ()  # of the kinds that `answers.QUANTITIES` knows
    numbers: tuple[str, ...] = ()  # to be named as they stand here
    loss_at_most: float | None = None
    tokens_at_least: int | None = None  # of a generated text that does not end by itself


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem. What depends on the edition is a dict with a key for each edition.

    Dicts by part have the key "" for the whole problem, or for a problem without parts.
    """

    id: str  # as edition 2025 spells it
    ids: dict[str, str]  # by edition
    title: str
    points: dict[str, int | None]  # by edition; None: the handout prints none
    sections: dict[str, str | None]  # of the handout, by edition; None: not known to us
    chapter: int
    notebook: str  # such as "02_bpe"
    check: str  # the module in `workbook.checks` and the function, such as "unicode:unicode1"
    prompt: dict[str, str]  # by part: what is asked, in our own words
    hints: tuple[str, str]  # a nudge, which is often a question, and then the idea
    signatures: tuple[Signature, ...] = ()  # of what is handed in; none for a written problem
    # By part: what the check of a written problem takes. The checks of runs say so themselves.
    takes: dict[str, str] = field(default_factory=dict)
    requires: dict[str, Requirement] = field(default_factory=dict)  # by part
    asks_corpora: tuple[str, ...] = ()  # of "tinystories" and "owt"
    differs: str = ""  # what makes the right answer another one in the other edition, if it is

    @property
    def kind(self) -> Literal["code", "written"]:
        """Whether code is handed in, or numbers and words."""
        return "code" if self.signatures else "written"

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts, such as ("a", "b"); () where the problem has none."""
        return tuple(filter(None, self.prompt))

    @property
    def hand_in(self) -> str:
        """What is handed in for a code problem, in words; "" for a written one."""
        if not self.signatures:
            return ""
        if len(self.signatures) > 1:
            return f"the pair ({', '.join(each.name for each in self.signatures)})"
        (only,) = self.signatures
        if only.kind == "script":
            return "the script itself, which no check can judge"
        return f"the {only.kind} {only}"

    def checker(self) -> Callable[[Any, str | None], Any]:
        """Load the function that checks an attempt at a part; with torch it takes seconds."""
        module, function = self.check.split(":")
        return getattr(import_module(f"workbook.checks.{module}"), function)


def get(id: str) -> Problem:
    """Find the problem with this id, in the spelling of either edition."""
    if not isinstance(id, str):
        raise ValueError(f"expected a problem's id such as 'train_bpe', got a {type(id).__name__}")
    by_any_id = {each: problem for problem in PROBLEMS.values() for each in problem.ids.values()}
    if id in by_any_id:
        return by_any_id[id]
    near = get_close_matches(id.lower(), by_any_id, n=1, cutoff=0.0)
    raise ValueError(f"no problem is called {id!r}; did you mean {near[0]!r}?")


def part_of(problem: Problem, part: str | None) -> str | None:
    """Name a part as the problem does: "A" and "(a)" are "a", and "" is None."""
    if part is not None and not isinstance(part, str):
        raise ValueError(f"expected a part such as 'a', got a {type(part).__name__}")
    name = (part or "").strip("() ").lower()
    if not name:
        return None
    if name in problem.parts:
        return name
    has = f"the parts {', '.join(problem.parts)}" if problem.parts else "no parts"
    raise ValueError(f"{problem.id} has {has}; there is no part {part!r}")


def _problem(
    id: str,
    title: str,
    *,
    points: int | tuple[int | None, int],
    section: str,
    chapter: int,
    notebook: str,
    id_2026: str | None = None,
    section_2026: str | None = None,
    **rest: Any,
) -> Problem:
    """Make a record: `points` and `section` are those of edition 2025, or `points` of both."""
    both_points = points if isinstance(points, tuple) else (points, points)
    return Problem(
        id=id,
        ids=dict(zip(EDITIONS, (id, id_2026 or id), strict=True)),
        title=title,
        points=dict(zip(EDITIONS, both_points, strict=True)),
        sections=dict(zip(EDITIONS, (section, section_2026), strict=True)),
        chapter=chapter,
        notebook=notebook,
        **rest,
    )


# fmt: off
_RECORDS = (
    # Chapter 2: Unicode and tokenizers.
    _problem(
        "unicode1", "The character with number 0",
        points=1, section="2.1", chapter=2, notebook="01_unicode",
        check="unicode:unicode1",
        prompt={
            "a": "Which character does `chr(0)` give? Name it, in one sentence.",
            "b": "Compare its `repr` with what you see when it is printed.",
            "c": 'Put it in the middle of a text, as in `"before" + chr(0) + "after"`. Look at the '
            "text's repr, its length and its print-out: what changes, and what does not?",
        },
        takes={
            "a": 'a code point, such as "U+0041", or a sentence',
            "b": "the repr, or a sentence",
            "c": "the length of such a text, or a sentence",
        },
        hints=(
            "Type `chr(0)` alone in a cell, then `print(chr(0))`, then `len(chr(0))`. Which of the "
            "three outputs do you trust, and why?",
            "A character that nobody can see is still a character. A cell shows the `repr`, which "
            "spells it out as an escape; `print` hands the character itself to the screen. "
            "`unicodedata` and the ASCII table know its name.",
        ),
    ),
    _problem(
        "unicode2", "From characters to bytes",
        points=3, section="2.2", chapter=2, notebook="01_unicode",
        check="encodings:unicode2",
        prompt={
            "a": "Encode several texts as UTF-8, UTF-16 and UTF-32 and compare the bytes. Give "
            "reasons to train a tokenizer on UTF-8 rather than on the other two. Two sentences.",
            "b": "Somebody decodes UTF-8 by decoding each byte on its own and joining the results. "
            "Give an input for which that goes wrong, and say why in one sentence.",
            "c": "Find two bytes that do not decode to any character as UTF-8. Say why in one "
            "sentence.",
        },
        takes={
            "a": "a sentence or two",
            "b": "bytes on which the function fails",
            "c": "two bytes, such as bytes([0x68, 0x69])",
        },
        requires={
            "b": Requirement(quantities=("example in bytes",)),
            "c": Requirement(quantities=("example in bytes",)),
        },
        hints=(
            "Encode one English, one Chinese and one emoji text in all three encodings, and look "
            "at the bytes, not only at how many there are. For (b) and (c): after which first "
            "bytes does UTF-8 expect more?",
            "Look for the zeros: the wide encodings are full of them, and two or four extra bytes "
            "at the front give the byte order. In UTF-8 every byte above 7F is part of a longer "
            "character. Bytes 80 to BF only ever continue one, and C2 to F4 only ever begin one.",
        ),
    ),
    _problem(
        "train_bpe", "Train a byte-pair encoding",
        points=15, section="2.5", chapter=2, notebook="02_bpe",
        check="train_bpe:train_bpe",
        signatures=(Signature("function", "train_bpe", "input_path, vocab_size, special_tokens"),),
        prompt={
            "": "Write a function that learns a byte-level BPE tokenizer from a text file. It "
            "returns the vocabulary, a dict from token ID to bytes, and the merges, a list of "
            "pairs of bytes in the order in which they were made. Split the text with GPT-2's "
            "pattern first; no merge crosses the edge of a pre-token. Of equally frequent pairs, "
            "merge the lexicographically greater one. Special tokens get IDs of their own; they "
            "cut the text and are never counted. `vocab_size` counts everything: special tokens, "
            "the 256 bytes, and the merges.",
        },
        hints=(
            "Make it right on one line of text before you make it fast: count the pre-tokens, keep "
            "each as a tuple of bytes with its count, and write the loop that merges the most "
            "frequent pair. Where must the text be cut before you count anything?",
            "Split at the special tokens first, then by the pattern. Choose the pair with "
            "`max(counts, key=lambda pair: (counts[pair], pair))`, which breaks ties as asked. For "
            "speed, note which pre-tokens contain which pair: a merge changes the counts only "
            "inside those, so take their old pairs away and add the new ones.",
        ),
    ),
    _problem(
        "train_bpe_tinystories", "A tokenizer for simple stories",
        points=2, section="2.5", chapter=2, notebook="02_bpe",
        check="tokenizer_experiments:train_bpe_tinystories", asks_corpora=("tinystories",),
        prompt={
            "": "Use the TinyStories training text, a vocabulary of 10,000 and `<|endoftext|>` as "
            "a special token. Allowed: 30 minutes, 30 GB, no GPU; under 2 minutes is within reach.",
            "a": "Train and save the tokenizer. How long did it take, and how much memory at its "
            "peak? What is the longest token, and does it make sense?",
            "b": "Profile the training. Which step takes most of the time?",
        },
        takes={
            "a": 'the longest token as bytes, such as b" hello", or a sentence',
            "b": "a sentence: the slowest step, and how you know",
        },
        requires={"a": Requirement(quantities=("time", "memory"))},
        hints=(
            "Measure twice: once for the time, once under a profiler. If your counting runs in "
            "child processes, whose memory and whose time does your measurement see?",
            "Add up the memory of the whole process tree, and profile a run that counts in one "
            "process: the parent of a pool only waits. Sort the vocabulary by length in bytes, and "
            "remember that a leading space is part of a token.",
        ),
    ),
    _problem(
        "train_bpe_expts_owt", "A tokenizer for the web",
        points=2, section="2.5", chapter=2, notebook="02_bpe",
        check="tokenizer_experiments:train_bpe_expts_owt", asks_corpora=("tinystories", "owt"),
        prompt={
            "": "Use the OpenWebText sample and a vocabulary of 32,000. Allowed: 12 hours, 100 GB, "
            "no GPU.",
            "a": "Train and save the tokenizer. What is the longest token, and does it make sense?",
            "b": "Compare this tokenizer with the one for TinyStories: what do they share, and how "
            "do they differ?",
        },
        takes={
            "a": 'the longest token as bytes, such as b" hello", or a sentence',
            "b": "a sentence or two",
        },
        hints=(
            "Look at the ten longest tokens as bytes, not as text. Would a person have written "
            "them?",
            "Web pages contain rulers made of hyphens, and text that was decoded with the wrong "
            "encoding and encoded again, which doubles its bytes. To compare the tokenizers, look "
            "for what is one token in one and several in the other.",
        ),
    ),
    _problem(
        "tokenizer", "Encode and decode", points=15, section="2.6", chapter=2, notebook="02_bpe",
        check="tokenizer:tokenizer",
        signatures=(Signature("class", "Tokenizer", "vocab, merges, special_tokens=None"),),
        prompt={
            "": "Write a class that turns text into tokens and back, given a vocabulary, merges "
            "and perhaps special tokens. It also loads itself from files, and encodes a stream of "
            "texts lazily: the tokens are those of the joined text, wherever the pieces were cut, "
            "and memory does not grow. Merges apply in the order in which they were learned, "
            "inside each pre-token. A special token becomes one token; where several match, the "
            "longest wins; one that the vocabulary lacks is added to it. Invalid UTF-8 decodes to "
            "U+FFFD.",
        },
        hints=(
            "Write `decode` first: join the bytes, and decode once at the end. For `encode`, take "
            "one pre-token: which of its pairs has to be merged first?",
            "Give each merge its rank. Inside a pre-token, merge the pair with the lowest rank "
            "until none is left. Split off special tokens first, with a pattern that tries the "
            "longest one first. In `encode_iterable` the last pre-token of a piece may continue in "
            "the next piece: hold it back until you know.",
        ),
    ),
    _problem(
        "tokenizer_experiments", "Two tokenizers at work",
        points=4, section="2.7", chapter=2, notebook="02_bpe",
        check="tokenizer_experiments:tokenizer_experiments", asks_corpora=("tinystories", "owt"),
        prompt={
            "a": "Draw ten documents each from TinyStories and OpenWebText and encode each ten "
            "with its own tokenizer. How many bytes per token do you get?",
            "b": "Now encode the OpenWebText documents with the TinyStories tokenizer. What "
            "happens to that figure, or to the tokens themselves?",
            "c": "How many bytes per second does your tokenizer encode? At that speed, how long "
            "would the Pile, 825 GB of text, take?",
            "d": "Encode the training and validation sets of both corpora and store the tokens as "
            "`uint16`. Why is that type a good choice?",
        },
        takes={
            "a": "a number of bytes per token, or a sentence",
            "b": "a number of bytes per token, or a sentence",
            "c": "a pair, bytes per second and hours, or a sentence",
            "d": "a sentence",
        },
        requires={"c": Requirement(quantities=("rate in bytes per second", "time"))},
        hints=(
            "Which way round is the ratio? Think about what a better tokenizer does to your "
            "figure. And for `uint16`: what is the largest token ID that you have to store?",
            "Bytes per token: the length of the encoded text divided by the number of tokens. For "
            "the Pile, 825 GB are 825 · 10⁹ bytes; divide by bytes per second, then by 3,600. Two "
            "bytes per token hold 65,536 different values, and both vocabularies are smaller than "
            "that.",
        ),
    ),
    # Chapter 3: the model.
    _problem(
        "linear", "A linear layer", points=1, section="3.4.2", chapter=3, notebook="03_transformer",
        check="transformer_linear:linear",
        signatures=(Signature("class", "Linear", "in_features, out_features"),),
        prompt={
            "": "Write a linear layer without bias as a module of your own. Its weight has the "
            "shape (out, in), initialised from a truncated normal distribution with variance 2 / "
            "(in + out).",
        },
        hints=(
            "Write down the shapes before the code: the last axis of the input, the two axes of "
            "the weight, the last axis of the output. Which axes are summed over?",
            "The weight has one row for each output, so that y = W x. For any number of leading "
            "axes that is `x @ W.T`, or an einsum over d_in. Fill an empty tensor with "
            "`nn.init.trunc_normal_`: its limits are absolute values, so give it three times the "
            "standard deviation.",
        ),
    ),
    _problem(
        "embedding", "A table of vectors",
        points=1, section="3.4.3", chapter=3, notebook="03_transformer",
        check="transformer_embedding:embedding",
        signatures=(Signature("class", "Embedding", "num_embeddings, embedding_dim"),),
        prompt={
            "": "Write the module that looks up one vector for each token. Its weight has one row "
            "per token in the vocabulary, initialised from a truncated standard normal "
            "distribution.",
        },
        hints=(
            "What does a tensor give you when you index it with a tensor of integers?",
            "`weight[token_ids]` has the axes of `token_ids` and one more. That is the whole "
            "forward pass. Every row is learned, row 0 too.",
        ),
    ),
    _problem(
        "rmsnorm", "Keep vectors at one length",
        points=1, section="3.5.1", chapter=3, notebook="03_transformer",
        check="transformer_rmsnorm:rmsnorm",
        signatures=(Signature("class", "RMSNorm", "d_model, eps=1e-5"),),
        prompt={
            "": "Write root-mean-square normalisation with a learned gain. Work in float32 inside, "
            "and return the dtype that came in.",
        },
        hints=(
            "Take one vector and a large ε, and compute the result by hand. Where does ε go, "
            "inside the root or outside? And what is 300 squared in float16?",
            "Go to float32 first. Take the mean of the squares along the last axis with "
            "`keepdim=True`, add ε, take the root, divide, multiply by the gain, and convert back "
            "to the dtype that came in.",
        ),
    ),
    _problem(
        "positionwise_feedforward", "The gated feed-forward layer",
        points=2, section="3.5.2", chapter=3, notebook="03_transformer",
        check="transformer_feedforward:positionwise_feedforward",
        signatures=(Signature("class", "SwiGLU", "d_model, d_ff"),),
        prompt={
            "": "Write the SwiGLU feed-forward layer: three linear maps, of which one, through "
            "SiLU, gates another. Its inner width is about 8/3 of `d_model`, a multiple of 64.",
        },
        hints=(
            "There are two ways up to d_ff and one way back. Which of the two goes through SiLU?",
            "W2 (SiLU(W1 x) ⊙ W3 x), and SiLU(x) is x times sigmoid(x), for which `torch.sigmoid` "
            "is allowed. The product is elementwise, before W2.",
        ),
    ),
    _problem(
        "rope", "Turn by position", points=2, section="3.5.3", chapter=3, notebook="03_transformer",
        check="transformer_rope:rope", section_2026="3.4.3",
        signatures=(
            Signature(
                "class", "RotaryPositionalEmbedding",
                "theta, d_k, max_seq_len",
                called="x, positions",
            ),
        ),
        prompt={
            "": "Write rotary position embedding: rotate each adjacent pair of features by an "
            "angle that grows with the position and shrinks with the pair's index. Nothing is "
            "learned; positions are passed in, and any leading dimensions are allowed.",
        },
        hints=(
            "Draw two numbers as an arrow in the plane, and rotate it by an angle. What happens to "
            "it at position 0, and what to the fastest pair at position 1?",
            "Cosines and sines of position · Θ^(-2k/d_k), k = 0, 1, ..., can be precomputed as a "
            "table with one row per position; index it with the positions. `x[..., 0::2]` and "
            "`x[..., 1::2]` are the two numbers of all pairs. Rotate them, `stack` on a new last "
            "axis, and flatten: that interleaves the pairs again.",
        ),
    ),
    _problem(
        "softmax", "Scores to probabilities",
        points=1, section="3.5.4", chapter=3, notebook="03_transformer",
        check="transformer_softmax:softmax",
        signatures=(Signature("function", "softmax", "x, dim"),),
        prompt={"": "Write softmax over one dimension, so that large scores do not overflow."},
        hints=(
            "What is exp(1000) in float32? And what happens to softmax when the same number is "
            "subtracted from all its inputs?",
            "Subtract the maximum along `dim`, exponentiate, and divide by the sum along `dim`. "
            "`keepdim=True` in both keeps the shapes compatible.",
        ),
    ),
    _problem(
        "scaled_dot_product_attention", "Attention",
        points=5, section="3.5.4", chapter=3, notebook="03_transformer",
        check="transformer_attention:scaled_dot_product_attention",
        signatures=(Signature("function", "scaled_dot_product_attention", "Q, K, V, mask"),),
        prompt={
            "": "Write attention for any number of leading dimensions, with an optional boolean "
            "mask: True means that the query may look at the key.",
        },
        hints=(
            "Name the axes: queries, keys, d_k, d_v. Which axis must be gone after the first "
            "product, and along which one do the weights of a query add up to 1?",
            "Q Kᵀ / √d_k, where the mask is False filled with -inf, softmax over the keys, times "
            "V. An einsum with `...` in front takes care of all leading axes. exp(-inf) is 0, "
            "which is why you fill before the softmax.",
        ),
    ),
    _problem(
        "multihead_self_attention", "Many heads, no look ahead",
        points=5, section="3.5.5", chapter=3, notebook="03_transformer",
        check="transformer_multihead:multihead_self_attention",
        signatures=(
            Signature(
                "class", "MultiHeadSelfAttention",
                "d_model, num_heads, max_seq_len=None, theta=None",
            ),
        ),
        prompt={
            "": "Write causal self-attention with several heads. Rotate queries and keys by "
            "position where RoPE is asked for, and not the values.",
        },
        hints=(
            "A head sees d_model / num_heads features of every position. In which order must the "
            "axes heads, positions and features be so that your attention function works on heads "
            "as if they were a batch?",
            'Project, then `rearrange(x, "... seq (heads d) -> ... heads seq d", heads=...)`, and '
            "the inverse before the output projection. The causal mask is a lower triangle with "
            "its diagonal. RoPE comes after the split, on queries and keys: d_k = d_model / "
            "num_heads.",
        ),
    ),
    _problem(
        "transformer_block", "One block",
        points=3, section="3.6", chapter=3, notebook="03_transformer",
        check="transformer_block:transformer_block",
        signatures=(
            Signature(
                "class", "TransformerBlock",
                "d_model, num_heads, d_ff, max_seq_len=None, theta=None",
            ),
        ),
        prompt={
            "": "Put attention and feed-forward together into one pre-norm block: each gets "
            "normalised input, and its output is added to the residual stream.",
        },
        hints=(
            "Follow one vector through the block. What is added to what, and what is the input of "
            "the second norm?",
            "Twice the same pattern: x = x + part(norm(x)), first with attention, then with the "
            "feed-forward layer. The residual stream itself is never normalised.",
        ),
    ),
    _problem(
        "transformer_lm", "The whole model",
        points=3, section="3.6", chapter=3, notebook="03_transformer",
        check="transformer_lm:transformer_lm",
        signatures=(
            Signature(
                "class", "TransformerLM",
                "vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta",
            ),
        ),
        prompt={
            "": "Write the whole language model: embedding, blocks, final norm, output head. It "
            "takes tokens and returns logits for every position.",
        },
        hints=(
            "List the modules in the order in which the tokens meet them. Which one comes between "
            "the last block and the head, and what is it for?",
            "Embedding, blocks in an `nn.ModuleList`, a final norm, and a linear layer up to the "
            "vocabulary. Return its logits: the softmax belongs to the loss and to decoding. Pass "
            "`context_length` and `rope_theta` on to each block.",
        ),
    ),
    _problem(
        "transformer_accounting", "What a model costs",
        points=5, section="3.6", chapter=3, notebook="04_accounting",
        check="accounting:transformer_accounting",
        differs="the inner width of the feed-forward layer",
        prompt={
            "": "Take the shape of GPT-2 XL: a vocabulary of 50,257, context 1,024, 48 layers, "
            "width 1,600, 25 heads. The inner width depends on the edition.",
            "a": "How many parameters does it have, and how many bytes do they need in float32?",
            "b": "List the matmuls of one forward pass over a full context. How many FLOPs do they "
            "take in total?",
            "c": "Which parts of the model take most of them?",
            "d": "Repeat for GPT-2 small (12 layers, width 768, 12 heads), medium (24, 1,024, 16) "
            "and large (36, 1,280, 20). How do the shares move as the model grows?",
            "e": "Make the context of XL 16,384. How do the total and the shares change?",
        },
        takes={
            "a": "a number of parameters, such as 124e6, or a sentence",
            "b": "a number of FLOPs, such as 3.5e12, or a sentence",
            "c": 'a part in words, such as "the output head"',
            "d": "a sentence or two",
            "e": "a number of FLOPs, such as 5e13, or a sentence",
        },
        requires={"a": Requirement(quantities=("memory",))},
        hints=(
            "Build the model on the meta device, where it takes no memory, and print the name and "
            "shape of every parameter. Which of those matrices take part in a matmul, and which "
            "two matmuls in attention have no parameters at all?",
            "A block has four matrices of d by d, the feed-forward matrices of d by d_ff, and two "
            "gains of length d; outside the blocks are the embedding, the last norm and the head. "
            "A matrix of n by m costs 2·T·n·m FLOPs for T tokens, scores and weighted sum 2·T·T·d "
            "each. Write each as a row of a table, let the table add them up, and look at the "
            "shares. Only the T·T terms grow with the square of the context.",
        ),
    ),
    # Chapter 4: the loss, the optimizer, the schedule.
    _problem(
        "cross_entropy", "The loss",
        points=(None, 1), section="4.1", chapter=4, notebook="03_transformer",
        check="transformer_cross_entropy:cross_entropy",
        signatures=(Signature("function", "cross_entropy", "logits, targets"),),
        prompt={
            "": "Write the cross-entropy of logits and target tokens: stable for large logits, "
            "averaged over all leading dimensions.",
        },
        hints=(
            "Write log(softmax(x)) as a formula and simplify it before you type it. Which exp and "
            "which log are left?",
            "Subtract each row's maximum; then the loss of a target is log Σ exp(x) - x[target]. "
            "`gather` along the last axis picks the targets for any batch shape, and the mean runs "
            "over all of them.",
        ),
    ),
    _problem(
        "learning_rate_tuning", "Three learning rates",
        points=1, section="4.2.1", chapter=4, notebook="05_optimizer",
        check="optimizer_tuning:learning_rate_tuning",
        prompt={
            "": "Run the toy SGD example for ten steps with learning rates 10, 100 and 1,000. Does "
            "the loss fall faster, slower, or grow?",
        },
        takes={
            "": "a dict of losses, such as {10: [...], 100: [...]}, or a sentence",
        },
        hints=(
            "Print all ten losses of each run, with an exponent (`:.3g`), and divide each by the "
            "one before. At which learning rate does the loss fall fastest, and at which does it "
            "grow?",
            "The loss is a mean of squares, so its gradient is the weights times a constant, here "
            "2/100. Each step multiplies all weights by the same number, 1 - 0.02 α / √(t + 1), "
            "and the loss by its square. Put α = 10, 100 and 1,000 in, and t = 0, 1, 2, 3.",
        ),
    ),
    _problem(
        "adamw", "The optimizer", points=2, section="4.3", chapter=4, notebook="05_optimizer",
        check="optimizer_adamw:adamw",
        signatures=(Signature("class", "AdamW", "params, lr, betas, eps, weight_decay"),),
        prompt={
            "": "Write AdamW as a subclass of torch's `Optimizer`, with the weight decay kept "
            "separate from the gradient.",
        },
        hints=(
            "Copy the shape of the handout's SGD example: `__init__` passes a dict of settings to "
            "`super().__init__`, and `step` goes through `self.param_groups`. Where do m, v and t "
            "live between two steps, and what are they before the first?",
            "`self.state[p]` is an empty dict at first: put zeros like p for m and v, and t = 0, "
            "into it. In each step increment t first, so that it starts at 1; update m with g and "
            "v with g². The learning rate of the step is α √(1 - β2ᵗ) / (1 - β1ᵗ), in a variable "
            "of its own: the decay uses α itself, times λ, and no gradient. Skip p where `p.grad` "
            "is None.",
        ),
    ),
    _problem(
        "adamwAccounting", "What training costs",
        points=2, section="4.3", chapter=4, notebook="04_accounting",
        check="accounting:adamwAccounting", id_2026="adamw_accounting",
        differs="the feed-forward layer, the GPU and the unit of time",
        prompt={
            "": "Train in float32 with AdamW.",
            "a": "Write the peak memory as a formula, separately for parameters, activations, "
            "gradients and optimizer state.",
            "b": "Put in GPT-2 XL's shape: memory as a number times the batch size, plus another. "
            "What is the largest batch that fits into 80 GB?",
            "c": "How many FLOPs does one AdamW step take?",
            "d": "How long do 400,000 steps with batches of 1,024 take on one GPU at half its peak "
            "FLOP/s? The GPU depends on the edition.",
        },
        takes={
            "a": "a number of bytes, or the formula in words",
            "b": "a batch size, or a sentence",
            "c": "FLOPs, for each parameter or for the step, or a sentence",
            "d": 'a time with its unit, such as "12 days", or a sentence',
        },
        requires={"d": Requirement(quantities=("time",))},
        hints=(
            "How many numbers does AdamW keep for each parameter, the parameter and its gradient "
            "included? And for the activations: which results of the forward pass does the "
            "backward pass need again?",
            "Parameters, gradients and the two moments are 4·P numbers of 4 bytes. List the "
            "activations in the order of the forward pass, with B as a factor in each: then the "
            "sum is a·B + b. GB are 10⁹ bytes, and the batch is rounded down. For (c) write "
            "AdamW's lines and count the operations on each element. For (d) a backward pass costs "
            "two forward passes; a day has 86,400 seconds, and a prefix such as tera is easily "
            "lost.",
        ),
    ),
    _problem(
        "learning_rate_schedule", "Up, then down a cosine",
        points=(None, 1), section="4.4", chapter=4, notebook="05_optimizer",
        check="optimizer_schedule:learning_rate_schedule",
        signatures=(
            Signature(
                "function", "schedule",
                "it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters",
            ),
        ),
        prompt={
            "": "Write the learning rate as a function of the step: a linear warm-up, a cosine "
            "down to the minimum, then constant.",
        },
        hints=(
            "Three branches, told apart by comparing `it` with the two step numbers. What should "
            "the learning rate be at it = 0, at the end of the warm-up, and at the end of the "
            "cosine?",
            "Let the progress be (it - warmup_iters) / (cosine_cycle_iters - warmup_iters), which "
            "goes from 0 to 1 in the middle branch. `math.cos(math.pi * progress)` goes from 1 to "
            "-1; add 1 and halve it, and use it to mix the maximum with the minimum.",
        ),
    ),
    _problem(
        "gradient_clipping", "A limit for gradients",
        points=1, section="4.5", chapter=4, notebook="05_optimizer",
        check="optimizer_clipping:gradient_clipping",
        signatures=(Signature("function", "clip", "parameters, max_l2_norm"),),
        prompt={
            "": "Write a function that scales all gradients in place, so that their joint norm "
            "does not exceed a limit.",
        },
        hints=(
            "There is one norm, not one for each parameter. Why would separate norms change the "
            "direction of the step? And how often can you go through `model.parameters()`?",
            "Collect the gradients that are not None in a list. Add up the squares of all their "
            "entries, and take one root. Where the norm is above the limit, multiply every "
            "gradient in place by limit / (norm + 1e-6); below it leave them unchanged.",
        ),
    ),
    # Chapters 5 and 6: training, and writing text.
    _problem(
        "data_loading", "Batches from one long array of tokens",
        points=2, section="5.1", chapter=5, notebook="06_training",
        check="data_loading:data_loading",
        signatures=(
            Signature(
                "function", "get_batch",
                "dataset, batch_size, context_length, device",
            ),
        ),
        prompt={
            "": "Write a function that cuts random windows out of one long array of tokens: a "
            "batch of inputs, and the same windows one token later as targets, on the requested "
            "device.",
        },
        hints=(
            "With n tokens and windows of m, at how many places can a window start such that its "
            "last target still exists? Try n = m + 1 in your head.",
            "There are n - m starts: 0 to n - m - 1. Draw `batch_size` of them at random, cut "
            "`dataset[i : i + m]` and `dataset[i + 1 : i + 1 + m]` for each, and turn only these "
            "pieces into int64 tensors: a memory map stays on the disk that way.",
        ),
    ),
    _problem(
        "checkpointing", "Stop and go on",
        points=1, section="5.2", chapter=5, notebook="06_training",
        check="checkpointing:checkpointing",
        signatures=(
            Signature("function", "save_checkpoint", "model, optimizer, iteration, out"),
            Signature("function", "load_checkpoint", "src, model, optimizer"),
        ),
        prompt={
            "": "Write two functions that store and restore model, optimizer and step number, in a "
            "file or a file-like object.",
        },
        hints=(
            "What would a run that resumes tomorrow need to know? Find out what `state_dict()` of "
            "a model and of an optimizer return, and what `load_state_dict` does with it.",
            "Put both state dicts and the step number into one dict, and pass it to `torch.save`: "
            "it takes a path as well as an open file. Loading is the same backwards: `torch.load`, "
            "both `load_state_dict`, and return the number.",
        ),
    ),
    _problem(
        "training_together", "The training script",
        points=4, section="5.3", chapter=5, notebook="06_training",
        check="training_words:training_together",
        signatures=(Signature("script"),),
        prompt={
            "": "Write the script that trains: every setting configurable, data read through a "
            "memory map, checkpoints, and training and validation loss reported as it goes.",
        },
        hints=(
            "Overfit one small batch before anything else: if the loss does not fall to almost "
            "zero, something is broken. Which settings would you want to change without editing "
            "the file?",
            "One step is: set the learning rate in `param_groups`, draw a batch, forward, loss, "
            "backward, clip, step, clear the gradients. Around it: `numpy.memmap` (or `numpy.load` "
            "with `mmap_mode`) for the data; every so many steps the loss on validation batches "
            "under `torch.no_grad()`, and a checkpoint. `argparse` makes every setting an option.",
        ),
    ),
    _problem(
        "decoding", "Write text", points=3, section="6", chapter=6, notebook="07_generation",
        check="decoding:decoding",
        signatures=(
            Signature(
                "function", "decode",
                "model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None",
            ),
        ),
        prompt={
            "": "Write text with a model: from a prompt, up to a number of tokens or the end "
            "token, with temperature and top-p sampling.",
        },
        hints=(
            "Only the logits of the last position say what comes next. Make it work greedily "
            "first, with a model that you can predict. What must happen to the token once it is "
            "drawn?",
            "Divide the logits by the temperature, then take the softmax. For top-p, sort the "
            "probabilities downwards and keep each one before which the sum is still less than p: "
            "the one that reaches p is kept, so at least one remains. Divide by their sum, draw "
            "with `torch.multinomial`, and map the position in the sorted list back to the token. "
            "Stop at the end token before you add it, and give the model no more than its context.",
        ),
    ),
    # Chapter 7: experiments.
    _problem(
        "experiment_log", "Keep a log",
        points=3, section="7.1", chapter=7, notebook="08_experiments",
        check="experiments_log:experiment_log",
        prompt={
            "": "Record every run so that its loss can be plotted against steps and against time. "
            "Hand in the code, and the log of what you tried.",
        },
        requires={"": Requirement(figure=True)},
        hints=(
            "In a week you will not know what `run7_final2` was. What would you have to write down "
            "to make exactly the same run again, and to know why you made it?",
            "A folder for each run: all settings, seed, device and versions once, and a line for "
            "each logged step with step, tokens, seconds and loss. Take the time from "
            "`time.perf_counter()`, minus its value at the start. Above them one table: what "
            "changed, why, what came out. A run that failed is a row like any other.",
        ),
    ),
    _problem(
        "learning_rate", "Find the learning rate",
        points=3, section="7.2", chapter=7, notebook="08_experiments",
        check="experiments_rates:learning_rate", asks_corpora=("tinystories",),
        prompt={
            "": "Use the small TinyStories model.",
            "a": "Sweep the learning rate, say how you searched, show the curves, and reach the "
            "loss that the handout names (there is an easier one for a CPU).",
            "b": "People say that the best learning rate lies at the edge of stability. Find where "
            "runs begin to diverge, and say how your best learning rate relates to it.",
        },
        requires={
            "a": Requirement(figure=True, loss_at_most=2.0),
            "b": Requirement(figure=True),
        },
        hints=(
            "Sweep over orders of magnitude first: is 2e-3 as far from 1e-3 as 1.001 is from 1? "
            "How do you know that the best learning rate is not beyond the last one that you "
            "tried?",
            "Try learning rates a factor of three apart until the best has worse ones on both "
            "sides, then a finer step around it. To find the edge, go up until a run diverges, and "
            "bisect on a logarithmic scale: the next learning rate is √(stable · diverging). Keep "
            "everything else the same: tokens, schedule, seed.",
        ),
    ),
    _problem(
        "batch_size_experiment", "Vary the batch size",
        points=1, section="7.2", chapter=7, notebook="08_experiments",
        check="experiments_batches:batch_size_experiment", asks_corpora=("tinystories",),
        prompt={
            "": "Train with batch sizes from 1 up to what the memory holds, 64 and 128 among them, "
            "with the learning rate tuned again where needed. What do you see?",
        },
        requires={"": Requirement(figure=True, numbers=("64", "128"))},
        hints=(
            "Two runs of 1,000 steps, one with batches of 1 and one of 128: which has read more? "
            "What must stay the same, so that only the batch size differs?",
            "Keep the number of tokens (steps × batch) the same, and shorten the warm-up with the "
            "steps. Tune the learning rate again: a larger batch usually allows a larger one. Plot "
            "the loss against steps, tokens and seconds, for each tells another story. If a large "
            "batch does not fit, accumulate the gradients of its parts.",
        ),
    ),
    _problem(
        "generate", "Read what it writes",
        points=1, section="7.2", chapter=7, notebook="07_generation",
        check="training_words:generate", asks_corpora=("tinystories",),
        prompt={
            "": "Let the trained model write at least 256 tokens, or up to its end token. How "
            "fluent is it? Name two things that make it better or worse.",
        },
        takes={
            "": "the text and what you say of it, its ids, or its number of tokens",
        },
        requires={"": Requirement(tokens_at_least=256)},
        hints=(
            "Draw several texts at several temperatures before you choose one. Count the tokens, "
            "too: how many are asked for at least?",
            "Read for grammar, for names and things that stay the same, and for sense over several "
            "sentences. What could make it better or worse: how long and on how much text the "
            "model was trained, its size, the temperature, top-p, a prompt unlike the training "
            "text.",
        ),
    ),
    _problem(
        "layer_norm_ablation", "Take the norms away",
        points=1, section="7.3", chapter=7, notebook="08_experiments",
        check="experiments_ablations:layer_norm_ablation", asks_corpora=("tinystories",),
        prompt={
            "": "Take out all RMSNorms. What happens at the old best learning rate, and at a lower "
            "one?",
        },
        requires={"": Requirement(figure=True)},
        hints=(
            "A run without norms that explodes says something about one learning rate. What else "
            "would you want to know before you say that norms are needed?",
            "First take the old best learning rate, with nothing else changed. Then go down by "
            "factors of three until it is stable, and on until the loss gets worse again: that is "
            "its own best learning rate. Look at the norm of the gradients in the log, too, just "
            "before the loss jumps.",
        ),
    ),
    _problem(
        "pre_norm_ablation", "Norm after, not before",
        points=1, section="7.3", chapter=7, notebook="08_experiments",
        check="experiments_ablations:pre_norm_ablation", asks_corpora=("tinystories",),
        prompt={"": "Compare post-norm blocks with pre-norm ones by their curves."},
        requires={"": Requirement(figure=True)},
        hints=(
            "In which of the two does the gradient flow from the last block to the first without "
            "passing a norm? And which of the two needs one more norm after the last block?",
            "Post-norm normalises the sum: x = norm(x + part(x)), in place of x = x + "
            "part(norm(x)). Train with the same seed, tokens and learning rate, and look at the "
            "beginning of the curves; then tune the learning rate of both. Is the difference "
            "larger than that between two seeds?",
        ),
    ),
    _problem(
        "no_pos_emb", "No positions at all",
        points=1, section="7.3", chapter=7, notebook="08_experiments",
        check="experiments_ablations:no_pos_emb", asks_corpora=("tinystories",),
        prompt={"": "Compare RoPE with no position information at all by their curves."},
        requires={"": Requirement(figure=True)},
        hints=(
            "Without positions, can a causal model tell `dog bites man` from `man bites dog`? "
            "Think of what the first token sees, and the second.",
            "Leave out the rotation of queries and keys and change nothing else. Each token still "
            "knows itself, and through the mask which tokens came before it, though hardly in "
            "which order. How much worse is it, and is that more than the difference between two "
            "seeds?",
        ),
    ),
    _problem(
        "swiglu_ablation", "No gate", points=1, section="7.3", chapter=7, notebook="08_experiments",
        check="experiments_ablations:swiglu_ablation", asks_corpora=("tinystories",),
        prompt={
            "": "Compare SwiGLU with a plain SiLU layer of about as many parameters by their "
            "curves.",
        },
        requires={"": Requirement(figure=True)},
        hints=(
            "How many matrices does each feed-forward layer have? If both kept the same inner "
            "width, which model would be larger?",
            "SwiGLU has 3·d·d_ff parameters, the plain layer 2·d·d_ff'. They are equal at d_ff' = "
            "3/2·d_ff; the handout's 4·d is close to that. Print both counts. Then train both with "
            "two or three seeds: the difference is small, so only the spread across seeds shows "
            "whether it is real.",
        ),
    ),
    _problem(
        "main_experiment", "The same model on the web",
        points=2, section="7.4", chapter=7, notebook="08_experiments",
        check="experiments_web:main_experiment", asks_corpora=("owt",),
        prompt={
            "": "Train the same model for as many steps on OpenWebText. Show the curve, say what "
            "the loss means compared with that on TinyStories, and show and judge a generated "
            "text.",
        },
        requires={"": Requirement(figure=True, tokens_at_least=256)},
        hints=(
            "Nats per token: a token of which tokenizer? Can two losses be compared if a token "
            "stands for more text in one of them?",
            "Divide by ln 2 and by the bytes that a token stands for: bits per byte can be "
            "compared. What remains is the text itself. Web pages hold names, numbers, code and "
            "opinions; how much of the next word of a simple story can you guess, and how much of "
            "these?",
        ),
    ),
    _problem(
        "leaderboard", "The best loss in the time",
        points=6, section="7.5", chapter=7, notebook="08_experiments",
        check="experiments_web:leaderboard", asks_corpora=("owt",), differs="the time allowed",
        prompt={
            "": "Reach the lowest validation loss on OpenWebText within the time that the handout "
            "allows. Show loss against time, and describe what you did.",
        },
        requires={"": Requirement(figure=True, loss_at_most=5.0)},
        hints=(
            "The time is fixed, not the steps. What makes a step faster, what makes it teach more, "
            "and how do you learn which of your changes did it?",
            "Change one thing at a time against a baseline, each for a short run. Candidates: "
            "bfloat16 and compiling, the batch size, the learning rate and a schedule that ends "
            "with the time, tied embeddings (with a smaller initialisation), a shorter context at "
            "first, width against depth. Stop by the clock, and leave time for the last "
            "evaluation.",
        ),
    ),
)
# fmt: on
PROBLEMS: dict[str, Problem] = {problem.id: problem for problem in _RECORDS}
