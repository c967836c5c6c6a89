"""What each problem asks, in our own words. Under "" stands what concerns all its parts."""

PROMPTS: dict[str, dict[str, str]] = {
    "unicode1": {
        "a": "Which character does `chr(0)` give? Name it, in one sentence.",
        "b": "Compare what `repr` makes of it with what you see when it is printed.",
        "c": 'Put it in the middle of a text, as in `"before" + chr(0) + "after"`. Look at the '
        "text's repr, its length and its print-out: what changes, and what does not?",
    },
    "unicode2": {
        "a": "Encode several texts as UTF-8, UTF-16 and UTF-32 and compare the bytes. Give reasons "
        "to train a tokenizer on UTF-8 rather than on the other two. Two sentences.",
        "b": "Somebody decodes UTF-8 by decoding each byte for itself and joining the results. "
        "Give an input on which that goes wrong, and say why in one sentence.",
        "c": "Find two bytes that, as UTF-8, decode to no character at all. Say in one sentence "
        "why.",
    },
    "train_bpe": {
        "": "Write a function that learns a byte-level BPE tokenizer from a text file. It returns "
        "the vocabulary, a dict from id to bytes, and the merges, a list of pairs of bytes in the "
        "order in which they were made. Split the text with GPT-2's pattern first; no merge "
        "crosses the edge of a piece. Of equally frequent pairs, merge the greater one. Special "
        "tokens get ids of their own; they cut the text and are never counted. "
        "`vocab_size` counts everything: special tokens, the 256 bytes, and the merges."
    },
    "train_bpe_tinystories": {
        "": "Use the TinyStories training text, 10,000 ids and `<|endoftext|>` as special token. "
        "Allowed: 30 minutes, 30 GB, no GPU; under 2 minutes is within reach.",
        "a": "Train and save the tokenizer. How long did it take, and how much memory at its peak? "
        "What is the longest token, and does it make sense?",
        "b": "Profile the training. Which step takes most of the time?",
    },
    "train_bpe_expts_owt": {
        "": "Use the OpenWebText sample and 32,000 ids. Allowed: 12 hours, 100 GB, no GPU.",
        "a": "Train and save the tokenizer. What is the longest token, and does it make sense?",
        "b": "Set this tokenizer beside the one for TinyStories: what is alike, what differs?",
    },
    "tokenizer": {
        "": "Write a class that turns text into ids and back, given a vocabulary, merges and "
        "perhaps special tokens. It also loads itself from files, and encodes a stream of texts "
        "lazily: the ids are those of the joined text, wherever the pieces were cut, and memory "
        "does not grow. Merges apply in the order in which they were learned, inside each "
        "pre-token. A special token becomes one id; where several fit, the longest wins; one that "
        "the vocabulary lacks is added to it. Bytes that are no UTF-8 decode to U+FFFD."
    },
    "tokenizer_experiments": {
        "a": "Draw ten documents each from TinyStories and OpenWebText and encode each ten with "
        "its own tokenizer. How many bytes does a token stand for?",
        "b": "Now encode the OpenWebText documents with the TinyStories tokenizer. What happens to "
        "that figure, or to the tokens themselves?",
        "c": "How many bytes a second does your tokenizer encode? At that speed, how long would "
        "the Pile, 825 GB of text, take?",
        "d": "Encode the training and validation sets of both corpora and store the ids as "
        "`uint16`. Why is that type a good choice?",
    },
    "linear": {
        "": "Write a linear layer without bias as a module of your own. Its weight has the shape "
        "(out, in), drawn from a truncated normal distribution with variance 2 / (in + out)."
    },
    "embedding": {
        "": "Write the module that looks up one vector for each id. Its weight has one row an id, "
        "drawn from a truncated standard normal distribution."
    },
    "rmsnorm": {
        "": "Write root-mean-square normalisation with a learned gain. Work in float32 inside, and "
        "hand back the type that came in."
    },
    "positionwise_feedforward": {
        "": "Write the SwiGLU feed-forward layer: three linear maps, of which one, through SiLU, "
        "gates another. Its inner width is about 8/3 of `d_model`, a multiple of 64."
    },
    "rope": {
        "": "Write rotary position embedding: rotate each adjacent pair of features by an angle "
        "that grows with the position and shrinks with the pair's number. Nothing is learned; "
        "positions are handed in, and any leading dimensions are allowed."
    },
    "softmax": {"": "Write softmax over one dimension, such that large scores do not overflow."},
    "scaled_dot_product_attention": {
        "": "Write attention for any number of leading dimensions, with an optional boolean mask: "
        "True means that the query may look at the key."
    },
    "multihead_self_attention": {
        "": "Write causal self-attention with several heads. Rotate queries and keys by position "
        "where RoPE is asked for, and not the values."
    },
    "transformer_block": {
        "": "Put attention and feed-forward together into one pre-norm block: each is fed "
        "normalised input, and its output is added to what came in."
    },
    "transformer_lm": {
        "": "Write the whole language model: embedding, blocks, final norm, output head. It takes "
        "ids and returns logits for every position."
    },
    "transformer_accounting": {
        "": "Take the shape of GPT-2 XL: 50,257 ids, context 1,024, 48 layers, width 1,600, 25 "
        "heads. The inner width depends on the edition.",
        "a": "How many parameters does it have, and how many bytes do they need in float32?",
        "b": "List the matrix products of one forward pass over a full context. How many FLOPs do "
        "they need together?",
        "c": "Which parts of the model need most of them?",
        "d": "Repeat for GPT-2 small (12 layers, width 768, 12 heads), medium (24, 1,024, 16) and "
        "large (36, 1,280, 20). How do the shares move as the model grows?",
        "e": "Make the context of XL 16,384. How do the total and the shares change?",
    },
    "cross_entropy": {
        "": "Write the cross-entropy of logits and target ids: stable for large logits, averaged "
        "over all leading dimensions."
    },
    "learning_rate_tuning": {
        "": "Run the toy SGD example for ten steps with learning rates 10, 100 and 1,000. Does the "
        "loss fall faster, slower, or grow?"
    },
    "adamw": {
        "": "Write AdamW as a subclass of torch's `Optimizer`, with the decay kept apart from the "
        "gradient."
    },
    "adamwAccounting": {
        "": "Train in float32 with AdamW.",
        "a": "Write the peak memory as a formula, apart for parameters, activations, gradients and "
        "optimizer state.",
        "b": "Put in GPT-2 XL's shape: memory as a number times the batch size, plus another. What "
        "is the largest batch that fits into 80 GB?",
        "c": "How many FLOPs does one AdamW step take?",
        "d": "How long do 400,000 steps with batches of 1,024 take on one GPU at half its peak "
        "rate? The GPU depends on the edition.",
    },
    "learning_rate_schedule": {
        "": "Write the learning rate as a function of the step: a straight warm-up, a cosine down "
        "to the minimum, then constant."
    },
    "gradient_clipping": {
        "": "Write a function that scales all gradients in place, such that their common norm does "
        "not exceed a limit."
    },
    "data_loading": {
        "": "Write a function that cuts random windows out of one long array of ids: a batch of "
        "inputs, and the same windows one id later as targets, on the device asked for."
    },
    "checkpointing": {
        "": "Write two functions that store and restore model, optimizer and step number, in a "
        "file or a file-like object."
    },
    "training_together": {
        "": "Write the script that trains: every setting configurable, data read through a memory "
        "map, checkpoints, and training and validation loss reported as it goes."
    },
    "decoding": {
        "": "Write text with a model: from a prompt, up to a number of tokens or the end token, "
        "with temperature and top-p sampling."
    },
    "experiment_log": {
        "": "Record every run so that its loss can be drawn against steps and against time. Hand "
        "in the code, and the log of what you tried."
    },
    "learning_rate": {
        "": "Use the small TinyStories model.",
        "a": "Sweep the learning rate, say how you searched, show the curves, and reach the loss "
        "that the handout names (there is a laxer one for a CPU).",
        "b": "People say that the best rate lies at the edge of stability. Find where runs begin "
        "to diverge, and say how your best rate relates to it.",
    },
    "batch_size_experiment": {
        "": "Train with batch sizes from 1 up to what the memory holds, 64 and 128 among them, "
        "with the learning rate tuned again where needed. What do you see?"
    },
    "generate": {
        "": "Let the trained model write at least 256 tokens, or up to its end token. How fluent "
        "is it? Name two things that make it better or worse."
    },
    "layer_norm_ablation": {
        "": "Take out all RMSNorms. What happens at the old best learning rate, and at a lower one?"
    },
    "pre_norm_ablation": {"": "Compare post-norm blocks with pre-norm ones by their curves."},
    "no_pos_emb": {"": "Compare RoPE with no position information at all by their curves."},
    "swiglu_ablation": {
        "": "Compare SwiGLU with a plain SiLU layer of about as many parameters by their curves."
    },
    "main_experiment": {
        "": "Train the same model for as many steps on OpenWebText. Show the curve, say what the "
        "loss means beside that on TinyStories, and show and judge a generated text."
    },
    "leaderboard": {
        "": "Reach the lowest validation loss on OpenWebText within the time that the handout "
        "allows. Show loss against time, and describe what you did."
    },
}
