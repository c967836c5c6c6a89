"""Chapter 7: runs, sweeps and what they show."""

HINTS: dict[str, tuple[str, str]] = {
    "experiment_log": (
        "In a week you will not know what `run7_final2` was. What would you have to write down to"
        " make exactly the same run again, and to know why you made it?",
        "A folder for each run: all settings, seed, device and versions once, and a line for each"
        " logged step with step, tokens, seconds and loss. Take the time from"
        " `time.perf_counter()`, minus its value at the start. Above them one table: what changed,"
        " why, what came out. A run that failed is a row like any other.",
    ),
    "learning_rate": (
        "Sweep over orders of magnitude first: is 2e-3 as far from 1e-3 as 1.001 is from 1? How do"
        " you know that the best rate is not beyond the last one that you tried?",
        "Try rates a factor of three apart until the best has worse ones on both sides, then a"
        " finer step around it. For the edge go on upwards until a run diverges, and bisect on a"
        " logarithmic scale: the next rate is √(stable · diverging). Keep everything else the"
        " same: tokens, schedule, seed.",
    ),
    "batch_size_experiment": (
        "Two runs of 1,000 steps, one with batches of 1 and one of 128: which has read more? What"
        " must stay the same, so that only the batch size differs?",
        "Keep the tokens the same, so that steps × batch is, and shorten the warm-up with the"
        " steps. Tune the rate again: a larger batch mostly bears a larger one. Draw the loss"
        " against steps, tokens and seconds, for each tells another story. Where a large batch"
        " does not fit, add up the gradients of its parts.",
    ),
    "layer_norm_ablation": (
        "A run without norms that explodes says something about one learning rate. What else would"
        " you want to know before you say that norms are needed?",
        "First take the old best rate, and nothing else changed. Then go down by factors of three"
        " until it is stable, and on until the loss gets worse again: that is its own best rate."
        " Look at the norm of the gradients in the log, too, just before the loss jumps.",
    ),
    "pre_norm_ablation": (
        "In which of both does the gradient run from the last block to the first without passing a"
        " norm? And which of both needs one more norm behind the last block?",
        "Post-norm normalises the sum: x = norm(x + part(x)), in place of x = x + part(norm(x))."
        " Train with the same seed, tokens and rate, and look at the beginning of the curves; then"
        " tune the rate of both. Is the difference larger than that between two seeds?",
    ),
    "no_pos_emb": (
        "Without positions, can a causal model tell `dog bites man` from `man bites dog`? Think of"
        " what the first token sees, and the second.",
        "Leave the rotation of queries and keys out and change nothing else. Each token still knows"
        " itself, and through the mask which tokens came before it, though hardly in which order."
        " How much worse is it, and is that more than two seeds differ by?",
    ),
    "swiglu_ablation": (
        "How many matrices has each feed-forward layer? If both kept the same inner width, which"
        " model would be larger?",
        "SwiGLU has 3·d·d_ff numbers, the plain layer 2·d·d_ff'. They are equal at"
        " d_ff' = 3/2·d_ff; the handout's 4·d is close to that. Print both counts. Then train both"
        " with two or three seeds: the difference is small, so only the spread says whether it is"
        " there.",
    ),
    "main_experiment": (
        "Nats a token: a token of which tokenizer? Can two losses be compared when a token stands"
        " for more text in one of them?",
        "Divide by ln 2 and by the bytes that a token stands for: bits a byte can be compared."
        " What remains is the text itself. Web pages hold names, numbers, code and opinions; how"
        " much of the next word of a simple story can you guess, and how much of these?",
    ),
    "leaderboard": (
        "The time is fixed, not the steps. What makes a step faster, what makes it teach more, and"
        " how do you learn which of your changes did it?",
        "Change one thing at a time against a base, each for a short run. Candidates: bfloat16 and"
        " compiling, the batch size, the learning rate and a schedule that ends with the time,"
        " tied embeddings (with a smaller initialisation), a shorter context at first, width"
        " against depth. Stop by the clock, and leave time for the last evaluation.",
    ),
}
