"""Chapter 3: the parts of the model, and the loss."""

HINTS: dict[str, tuple[str, str]] = {
    "linear": (
        "Write down the shapes before the code: the last axis of the input, the two axes of the "
        "weight, the last axis of the output. Which axes are summed over?",
        "The weight has one row for each output, so that y = W x. For any number of leading axes "
        "that is `x @ W.T`, or an einsum over d_in. Fill an empty tensor with "
        "`nn.init.trunc_normal_`: its limits are numbers, so give it three times the standard "
        "deviation.",
    ),
    "embedding": (
        "What does a tensor give you when you index it with a tensor of integers?",
        "`weight[token_ids]` has the axes of the ids, and one more. That is the whole forward. "
        "Every row is learned, row 0 too.",
    ),
    "rmsnorm": (
        "Take one vector and a large ε, and compute the result by hand. Where does ε go, inside "
        "the root or outside? And what is 300 squared in float16?",
        "Go to float32 first. Take the mean of the squares along the last axis with "
        "`keepdim=True`, add ε, take the root, divide, multiply by the gain, and go back to the "
        "type that came in.",
    ),
    "positionwise_feedforward": (
        "There are two ways up to d_ff and one way back. Which of the two goes through SiLU?",
        "W2 (SiLU(W1 x) ⊙ W3 x), and SiLU(x) is x times sigmoid(x), for which `torch.sigmoid` is "
        "allowed. The product is taken number by number, before W2.",
    ),
    "rope": (
        "Draw two numbers as an arrow in the plane, and turn it by an angle. What do position 0, "
        "and the fastest pair at position 1, become?",
        "Cosines and sines of position · Θ^(-2k/d_k), k = 0, 1, ..., can wait in a table with one "
        "row for each position; index it with the positions. `x[..., 0::2]` and `x[..., 1::2]` are "
        "the two numbers of all pairs. Turn them, `stack` on a new last axis, and flatten: that "
        "weaves the pairs together again.",
    ),
    "softmax": (
        "What is exp(1000) in float32? And what happens to softmax when the same number is taken "
        "from all its inputs?",
        "Take the maximum along `dim` away, exponentiate, and divide by the sum along `dim`. "
        "`keepdim=True` in both keeps the shapes matched.",
    ),
    "scaled_dot_product_attention": (
        "Name the axes: queries, keys, d_k, d_v. Which axis must be gone after the first product, "
        "and along which one do the weights of a query add up to 1?",
        "Q Kᵀ / √d_k, where the mask is False filled with -inf, softmax over the keys, times V. An "
        "einsum with `...` in front takes care of all leading axes. What exp makes of -inf is the "
        "reason for filling before the softmax.",
    ),
    "multihead_self_attention": (
        "A head sees d_model / num_heads numbers of every position. In which order do the axes "
        "heads, positions and numbers have to stand so that your attention function works on "
        "heads as if they were a batch?",
        'Project, then `rearrange(x, "... seq (heads d) -> ... heads seq d", heads=...)`, and the '
        "same backwards before the output projection. The causal mask is a lower triangle with its "
        "diagonal. RoPE comes after the split, on queries and keys: d_k = d_model / num_heads.",
    ),
    "transformer_block": (
        "Follow one vector through the block. What is added to what, and what does the second norm "
        "get to see?",
        "Twice the same pattern: x = x + part(norm(x)), first with attention, then with the "
        "feed-forward layer. What is added to is never normalised itself.",
    ),
    "transformer_lm": (
        "List the modules in the order in which the ids meet them. Which one comes between the "
        "last block and the head, and what is it good for?",
        "Embedding, blocks in an `nn.ModuleList`, a final norm, and a linear layer up to the "
        "vocabulary. Return its logits: the softmax belongs to the loss and to decoding. Hand "
        "`context_length` and `rope_theta` on to each block.",
    ),
    "cross_entropy": (
        "Write log(softmax(x)) as a formula and simplify it before you type it. Which exp and "
        "which log are left?",
        "Take each row's maximum away; then the loss of a target is log Σ exp(x) - x[target]. "
        "`gather` along the last axis picks the targets for any batch shape, and the mean runs "
        "over all of them.",
    ),
}
