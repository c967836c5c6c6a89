"""What a model and its training cost."""

HINTS: dict[str, tuple[str, str]] = {
    "transformer_accounting": (
        "Build the model on the meta device, where it takes no memory, and print the name and "
        "shape of every parameter. Which of those matrices take part in a product, and which two "
        "products in attention have no parameter at all?",
        "A block has four matrices of d by d, the feed-forward matrices of d by d_ff, and two "
        "gains of length d; around the blocks stand the embedding, the last norm and the head. A "
        "matrix of n by m costs 2·T·n·m FLOPs for T ids, scores and weighted sum 2·T·T·d each. "
        "Write each as a row of a table, let the table add them up, and look at the shares. Only "
        "T times T grows with the square of the context.",
    ),
    "adamwAccounting": (
        "How many numbers does AdamW keep for each parameter, the parameter and its gradient "
        "included? And for the activations: which results of the forward pass does the backward "
        "pass need again?",
        "Parameters, gradients and the two moments are 4·P numbers of 4 bytes. List the "
        "activations in the order of the forward pass, with B as a factor in each: then the sum "
        "is a·B + b. GB are 10⁹ bytes, and the batch is rounded down. For (c) write AdamW's lines "
        "and count the operations on each element. For (d) a backward pass costs two forward "
        "passes; a day has 86,400 seconds, and a prefix such as tera is easily lost.",
    ),
}
