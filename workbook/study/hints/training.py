"""Chapters 4 to 6: optimizers, training, writing text."""

HINTS: dict[str, tuple[str, str]] = {
    "learning_rate_tuning": (
        "Print all ten losses of each run, with an exponent (`:.3g`), and divide each by the one "
        "before. Which rate falls fastest, and which one grows?",
        "The loss is a mean of squares, so its gradient is the weights times a constant, here "
        "2/100. Each step multiplies all weights by the same number, 1 - 0.02 α / √(t + 1), and "
        "the loss by its square. Put α = 10, 100 and 1,000 in, and t = 0, 1, 2, 3.",
    ),
    "adamw": (
        "Copy the shape of the handout's SGD example: `__init__` hands a dict of settings to "
        "`super().__init__`, and `step` goes through `self.param_groups`. Where do m, v and t live "
        "between two steps, and what are they before the first?",
        "`self.state[p]` is an empty dict at first: put zeros like p for m and v, and t = 0, into "
        "it. In each step raise t first, so that it begins at 1; update m with g and v with g². "
        "The rate of the step is α √(1 - β2ᵗ) / (1 - β1ᵗ), in a variable of its own: the decay "
        "takes α itself, times λ, and no gradient. Skip p where `p.grad` is None.",
    ),
    "learning_rate_schedule": (
        "Three branches, told apart by comparing `it` with the two step numbers. What should the "
        "rate be at it = 0, at the end of the warm-up, and at the end of the cosine?",
        "Let the share done be (it - warmup_iters) / (cosine_cycle_iters - warmup_iters), which "
        "goes from 0 to 1 in the middle branch. `math.cos(math.pi * share)` goes from 1 to -1; add "
        "1 and halve it, and use it to mix the maximum with the minimum.",
    ),
    "gradient_clipping": (
        "There is one norm, not one for each parameter. Why would separate norms change the "
        "direction of the step? And how often can you go through `model.parameters()`?",
        "Collect the gradients that are not None in a list. Add up the squares of all their "
        "entries, and take one root. Where the norm is above the limit, multiply every gradient in "
        "place by limit / (norm + 1e-6); below it leave them alone.",
    ),
    "data_loading": (
        "With n ids and windows of m, at how many places can a window start such that its last "
        "target still exists? Try n = m + 1 in your head.",
        "There are n - m starts: 0 to n - m - 1. Draw `batch_size` of them at random, cut "
        "`dataset[i : i + m]` and `dataset[i + 1 : i + 1 + m]` for each, and turn only these "
        "pieces into int64 tensors: a memory map stays on the disk that way.",
    ),
    "checkpointing": (
        "What would a run that goes on tomorrow need to know? Find out what `state_dict()` of a "
        "model and of an optimizer hold, and what `load_state_dict` does with it.",
        "Put both state dicts and the step number into one dict, and hand it to `torch.save`: it "
        "takes a path as well as an open file. Loading is the same backwards: `torch.load`, both "
        "`load_state_dict`, and return the number.",
    ),
    "training_together": (
        "Make it learn one small batch by heart before anything else: if the loss does not fall to "
        "almost zero, something is broken. Which settings would you want to change without editing "
        "the file?",
        "One step is: set the rate in `param_groups`, draw a batch, forward, loss, backward, clip, "
        "step, clear the gradients. Around it: `numpy.memmap` (or `numpy.load` with `mmap_mode`) "
        "for the data; every so many steps the loss on validation batches under `torch.no_grad()`, "
        "and a checkpoint. `argparse` makes every setting an option.",
    ),
    "decoding": (
        "Only the logits of the last position say what comes next. Make it work greedily first, "
        "with a model that you can predict. What must happen with the id once it is drawn?",
        "Divide the logits by the temperature, then take the softmax. For top-p, sort the "
        "probabilities downwards and keep those before which less than p has been added up: the "
        "one that reaches p is kept, and so is at least one. Divide by their sum, draw with "
        "`torch.multinomial`, and map the place in the sorted list back to the id. Stop at the end "
        "token before you add it, and show the model no more than its context.",
    ),
    "generate": (
        "Draw several texts at several temperatures before you choose one. Count the tokens, too: "
        "how many are asked for at least?",
        "Read for grammar, for names and things that stay the same, and for sense over several "
        "sentences. What could make it better or worse: how long and on how much text the model "
        "was trained, its size, the temperature, top-p, a prompt unlike the training text.",
    ),
}
