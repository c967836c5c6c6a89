"""Answers about costs as learners hand them in, by problem and part, and what is said of them."""

import math

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"
SIZES = ("small", "medium", "large")


def by_size(key, *values):
    """One quantity of each size."""
    return {size: {key: value} for size, value in zip(SIZES, values, strict=False)}


RIGHT = {
    (MODEL, "a"): [
        *(2127057600, 2127057600.0, 2.127e9, 2127.06e6),
        *("2.13 billion", "2.127 Billion parameters", "2,127,057,600 params"),
        {"gb": "8.51gb"},
        "8.51 GB",
    ],
    (MODEL, "b"): [4513336524800, 4.51e12, "4.51e12", "4.5 TFLOPs", "4.5 tflop", "4.513 TFLOPS"],
    (MODEL, "c"): [
        "ffn",
        "FFN",
        66.9,
        {"ffn": 0.669, "attention": 0.294, "head": 0.036},
        {"ffn": ".669", "head": "3.6%"},
        {"ffn": 0.67, "attention": 0.3},
        {"ffn": 66.9, "attention": 29.4, "head": "3.6 %"},
        {"ffn": 67, "projections": 22, "scores": 7.1},
    ],
    (MODEL, "d"): [
        by_size("flops", 349630365696, 1033109504000, 2257754521600),
        by_size("flops", 291648307200, 830172299264, 1768530903040),
        by_size("flops", "3.50e11", "1.03 TFLOPs", 2.26e12),
    ],
    (MODEL, "e"): [
        149522795724800,
        1.495e14,
        "149.5 TFLOPs",
        {"growth": "33.1 times"},
        {"attention": "55.2%"},
        "33 times",
    ],
    (ADAMW, "a"): ["26.17 GB", 26168601600, {"parameters": 1.64e9}, "34 GB"],
    (ADAMW, "b"): [
        3,
        {"a": 15.52, "b": 26.17, "batch": 3},
        {"a": 15.5, "b": 34, "batch": 2},
        {"a": "14.45 GiB", "b": "24.37 GiB", "batch": 3},
    ],
    (ADAMW, "c"): [14, "14 FLOPs per parameter", 15, 12],
    (ADAMW, "d"): [5115, 5115.19, "5,115 days", 6593, "14 years.", "122764.6 h", "4.42e8 s"],
}

# Right in edition 2026 and handed in under 2025; once one number is, all are judged by it.
OF_THE_OTHER = {
    (MODEL, "c"): [{"ffn": 57.5, "projections": 28.6, "scores": 9.2, "head": 4.7}],
    (MODEL, "e"): [{"flops": 1.336e14, "growth": 38, "scores": 61.7}],
    (ADAMW, "d"): ["4850 h"],
}

RIGHT_2026 = {
    (MODEL, "a"): [1640452800, {"parameters": 1.64e9, "gb": 6.56}, {"gb": "6.11 GiB"}],
    (MODEL, "b"): ["3.52 TFLOPs"],
    (MODEL, "c"): [{"ffn": 57.5}],
    (MODEL, "d"): [
        by_size("flops", 291648307200, 830172299264, 1768530903040),
        by_size("flops", 349630365696, 1033109504000, 2257754521600),
    ],
    (MODEL, "e"): [{"flops": "133.6 TFLOPs", "growth": 38.0}],
    ("adamw_accounting", "a"): [{"parameters": 1640452800}],
    (ADAMW, "b"): [
        {"a": 16.37, "b": 26.25, "batch": 3},
        {"a": 16.36, "b": 26.17, "batch": 3},
    ],  # d_ff of exactly 8/3 d_model
    (ADAMW, "c"): [14],
    (ADAMW, "d"): [4850, "202 days"],
}

WRONG = {
    (MODEL, "a"): [
        (2127056000, "when the final norm is left out"),
        (1.56e9, "two matrices (no W3)"),
        ({"gb": "5.80 GB"}, "GiB are called GB"),
        (1557611200, "biases are counted in"),
        ({"gb": 34.03}, "gradients and optimizer state"),
        (2046646400, "share one matrix"),
        (2046000000, "about 1.04 times that, as the problem states it"),
        ({"parameters": 8.508e9, "gb": 8.51}, "It is: bytes of the parameters"),
    ],
    (MODEL, "b"): [
        (3.02e12, "scores and weighted sums (T × T) are left out and the head"),
        (4348654387200, "the head is left out"),
        (1006632960000, "only the FLOPs of the projections are counted"),
        (2256668262400, "counted as one FLOP"),
        (4513313484800, "is it a slip in a sum?"),
        (13540009574400, "backward pass is counted in"),
        (4.6e12, "times that"),
        (3.5e11, "350,000,000,000 FLOPs"),
        (2127057600, "It is: parameters, of (a)"),
        ("4.5 TFLOP/s", "FLOP/s a speed"),
        ("4.5 TFLOPs per second", "FLOP/s a speed"),
    ],
    (MODEL, "c"): [
        ("scores", "grow with the square of the context"),
        ("attention", "four matmuls of d × d"),
        ("projections", "They are d × d"),
        ("head", "there is only one of it"),
        ({"ffn": 50}, ""),
        (22.3, "share of the projections"),
        ({"head": 66.9, "ffn": 3.6}, "mixed up"),
        ({"ffn": 60, "attention": 30, "head": 10}, "is it a slip in a sum?"),  # no head left out
        ({"ffn": 3.02e12}, "A share is 100 % at most"),
        ({"ffn": 66.9, "attention": 37.8}, "two editions"),
    ],
    (MODEL, "d"): [
        (by_size("attention", 19.35, 24.24, 28.57), "d_ff is left at 6,400"),
        ({"small": {"attention": 50, "ffn": 30, "head": 20}}, ""),
        (by_size("ffn", 45), ""),
        (by_size("flops", 2.916e11, 1.033e12, 2.258e12), "with the same d_ff"),
        (by_size("head", 30), "times that"),  # which is the attention of another size
    ],
    (MODEL, "e"): [
        ({"growth": 16}, "(T × T) are left out"),
        ({"growth": 256}, "256 times as many"),
        (7.22e13, "256 times as many"),
        (4513336524800, "the context is left at 1,024"),
        ({"flops": 1.495e14, "ffn": 55.2}, "share of the scores"),
        ({"flops": 1.336e14, "growth": 38, "scores": 50}, "(`scores`)"),
    ],
    (ADAMW, "a"): [
        ({"parameters_gb": 8.51, "optimizer_gb": 13.1}, "with the same d_ff"),
        ("19.6 GB", "one of the two moments"),
        ({"optimizer_gb": 6.54}, "`optimizer"),
    ],
    (ADAMW, "b"): [
        ({"a": 10.49, "b": 26.17, "batch": 5}, "only one map of T × T"),
        (4, "the batch is rounded up"),
        (3.47, "rounded down"),
        ({"a": 14.4, "b": 34}, ""),
        ({"a": 15.5, "b": 34, "batch": 3}, "Your own a and b give another batch"),
        ({"a": 7.75, "b": 26.2, "batch": 3}, "7.75 GB (`a`)"),
        ({"a": 15.5, "b": 26.2, "batch": 5}, "b is not subtracted"),
        ({"a": 6.4, "b": 26.2, "batch": 8}, "6.4 GB (`a`)"),
    ],
    (ADAMW, "c"): [(18, "expected"), (6, "about 2.33 times that")],
    (ADAMW, "d"): [
        ("5115 hours", "In days it would be right: is the unit a slip?"),
        ({"hours": 5115}, "In days it would be right"),
        (4.6, "a factor of 1,000 is lost"),
        (2558, "reaches its whole peak"),
        (4645, "scores and weighted sums (T × T) are left out"),
    ],
}

# Other forms, and a piece of what is said; without one, the form that is taken.
REFUSED = {
    (MODEL, "a"): [
        ((2127057600, "8.51 GB"), ""),
        ({"count": 2127057600}, "its keys are parameters, gb"),
        (2.13, 'In billion parameters it is right: hand in "2.13 billion parameters".'),
        ({"parameters": 2.127}, "In billion parameters it is right"),
        (2.05, 'Write the unit, as in "0.52 billion parameters"'),
        ("2,127,057,600 parameters, 8.51 GB", "no number in a text is judged. Hand in"),
        ("about 2.05 billions of them", "no number in a text is judged"),
        ("2e9", "two significant digits: 2e9 has one"),
        (math.nan, ""),
        (10**400, ""),
        (-3, "-3 cannot be the `parameters`"),
        ({"parameters": "8.51 GB"}, "'8.51 GB' cannot be the `parameters`"),
    ],
    (MODEL, "c"): [(("ffn", 66.9), ""), ({"feed-forward": 66.9}, "is not a key")],
    (MODEL, "d"): [
        ({"xl": {"flops": 3e12}}, ""),
        (1033109504000, 'hand in {"medium": 1033109504000, ...}'),
    ],
    (MODEL, "e"): [(33, 'As the growth it is right: hand in {"growth": 33}.')],
    (ADAMW, "a"): [
        ("16P bytes = 26.2 GB", "no number in a text is judged. Hand in"),
        (13.08, 'hand in {"optimizer_gb": 13.08}'),
        (26.2, '26.2 what? In GB it is right: hand in "26.2 GB".'),
    ],
    (ADAMW, "b"): [({"a": 15.52e9, "b": 26.2, "batch": 3}, "In bytes it is right")],
    (ADAMW, "c"): [(22897526400, 'As the FLOPs of a step it is right: hand in {"step": 2289')],
    (ADAMW, "d"): [
        ({"seconds": 4.4e8}, "'seconds' is not a key"),
        (5000, "15 days"),
        (4850, 'In hours it is right in edition 2026: hand in "4,850 hours".'),
        (122764.6, "In hours it is right"),
        (4.42e8, "In seconds it is right"),
        ("140 years or so", "no number in a text is judged"),
    ],
}
