"""Answers about costs as learners hand them in, by problem and part, and what is said of them."""

import math

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"
TABLE = {"ffn": 3019898880000, "projections": 1006632960000, "scores": 322122547200,
         "head": 164682137600}  # fmt: skip

RIGHT = {
    (MODEL, "a"): [
        2127057600, 2127057600.0, 2.127e9, 2127.06e6, "2,127,057,600", "2 127 057 600",
        "2.13B", "2.13B parameters",
        "about 2.1 billion", "8.51 GB", "8.5GB", "7.924 GiB", "8,508,230,400 bytes", 8508230400,
        (2127057600, 8508230400), (2127057600, "8.51 GB"), {"parameters": 2127057600, "gib": 7.92},
        {"count": 2127057600, "memory_gb": 8.5082304}],
    (MODEL, "b"): [
        4513336524800, 4.51e12, "4.51e12", "4.5 TFLOPs", "4,513 GFLOPs", "4.5 trillion FLOPs",
        "4.51 × 10^12 FLOPs", r"$4.51 \times 10^{12}$", TABLE, [*TABLE.values()],
        [*TABLE.values(), 4513336524800], (3019898880000, 4513336524800),
        {"total": 4513336524800, "ffn": 3019898880000},
        {"attention": 1.33e12, "ffn": 3.02e12, "lm_head": 1.65e11},
        {"per layer": 90596966400 * 48, "lm_head": 164682137600, "total": 4513336524800}],
    (MODEL, "c"): [
        "FFN", "the feed-forward layers", "MLP blocks", "SwiGLU", 66.9, 0.669, r"67 \%", ("FFN",),
        ("FFN", 66.9), {"ffn": 66.9, "attention": 29.4, "head": "3.6 %"},
        {"ffn": 67, "attention": 22, "attention_scores": 7, "head": 4}],
    (MODEL, "d"): [
        (349630365696, 1033109504000, 2257754521600), (291648307200, 830172299264, 1768530903040),
        {"small": 3.5e11, "medium": 1.03e12, "large": 2.26e12, "xl": 4.51e12},
        ("3.50e11", "1.03 TFLOPs", "2.26e12"), {"small": {"ffn": 1.74e11}},
        {"small": {"total": 3.5e11, "ffn": 49.8, "head": 22.6}, "xl": {"ffn": 66.9}},
        {"head": (22.6, 10.2, 5.8, 3.6)}],
    (MODEL, "e"): [
        149522795724800, 1.495e14, "149.5 TFLOPs", "33.1x", 33.1, "x33",
        {"flops": 1.495e14, "growth": 33.1, "scores": 55.2}, (1.495e14, 33.1, 55.2)],
    (ADAMW, "a"): [
        1635537600, "1.64e9", "26.17 GB", {"parameters_gb": 6.54, "optimizer_gb": 13.08},
        {"parameters": 6542150400, "gradients": 6542150400, "optimizer": 13084300800},
        {"params": "6.5 GB", "grads": "6.5 GB", "m": "6.5 GB", "v": "6.5 GB"},
        2127057600, "34 GB", 34032921600, "31.7 GiB", "16 P", ("8.5 GB", "8.5 GB", "17 GB")],
    (ADAMW, "b"): [
        3, "batch 3", (15.52, 26.17, 3), (15.5, 34, 2), ("14.45 GiB", "24.37 GiB"),
        (16.15, 26.17, 3), {"a": 15.518, "b": 26.169, "batch": 3}, (15517753344, 26168601600)],
    (ADAMW, "c"): [
        14, "14P", "14 * P FLOPs", "14 FLOPs per parameter", 15, "12 P", 22897526400, 29778806400,
        "22.9 GFLOPs"],
    (ADAMW, "d"): [
        5115, 5115.19, "5,115 days", "442M seconds", "14 years", "18 years", 6593, 6564.1, 5105.4,
        ("18 years", "6,570 days"), "about 6,570 days", "6.5k days", "157,000 hours",
        {"days": 5115.2}],
}  # fmt: skip

RIGHT_2026 = {
    (MODEL, "a"): [1640452800, ("1.64B parameters", "6.56 GB"), "6.11 GiB"],
    (MODEL, "b"): ["3.52 TFLOPs"],
    (MODEL, "c"): [("FFN", 57.5)],
    (MODEL, "d"): [(291648307200, 830172299264, 1768530903040),
                   (349630365696, 1033109504000, 2257754521600)],
    (MODEL, "e"): [("133.6 TFLOPs", "38.0x")],
    ("adamw_accounting", "a"): [1640452800],
    (ADAMW, "b"): [(16.37, 26.25, 3), (16.36, 26.17, 3)],  # d_ff of exactly 8/3 d_model
    (ADAMW, "c"): [14],
    (ADAMW, "d"): [4850, "202 days"],
}  # fmt: skip

WRONG = {
    (MODEL, "a"): [
        (2127056000, "when the final norm is left out"),
        ((2127056000, 8508224000), "when the final norm is left out"),
        ((2127056000, "8.51 GB"), "when the final norm is left out"),
        ("1.56e9", "two matrices (no W3)"), ("5.80 GB", "GiB are called GB"),
        (("1.56 billion", "5.80 GB"), "a learned table of positions"),
        (1557611200, "biases are counted in"), ("34.03 GB", "gradients and optimizer state"),
        (2046646400, "share one matrix"), (-3, "must be positive"), (math.nan, "cannot be read"),
        (10**400, "cannot be read"), (b"12", "cannot be read"), ({1, 2}, "cannot be read")],
    (MODEL, "b"): [
        ("3.02e12", "scores and weighted sums (T × T) are left out and the head"),
        (4348654387200, "the head is left out"), (2256668262400, "counted as one FLOP"),
        (4513313484800, "is it a slip in a sum?"), (13540009574400, "backward pass is counted in"),
        ({"total": 4513336524800, "ffn": 1.5e12}, "times as much"),
        ({**TABLE, "total": 4.6e12}, ""),
        ({"qkvo": 1006632960000, "w1": 1006632960000, "w2": 1006632960000, "w3": 1006632960000,
          "x": 164682137600}, "scores and weighted sums (T × T) are left out"),
        ([*TABLE.values(), 10**11], "no assumption known here")],
    (MODEL, "c"): [
        ("the query-key products", "grow with the square of the context"),
        ("attention", "four matmuls of d × d"), ("the output head", "there is only one of it"),
        ("the attention scores", "grow with the square"), (("attention", 29.4), "four matmuls"),
        ({"ffn": 66.9, "attention": 22.3}, "for something else"),
        (("FFN", 50), ""), (100, ""), (100.0, ""), (("FFN", 22.3), "share of the projections"),
        (22.3, "share of the projections")],
    (MODEL, "d"): [
        ({"attention": (19.35, 24.24, 28.57)}, "d_ff is left at 6,400"),
        ({"small": 1.03e12, "medium": 3.5e11, "large": 2.26e12}, "mixed up"),
        ((1.03e12, 3.5e11, 2.26e12), "mixed up"),
        ({"small": 3.2e11, "medium": 1.03e12, "large": 2.26e12}, ""),
        ({"small": {"attention": 50, "ffn": 30, "head": 20}}, ""), ({"small": {"head": 3.6}}, ""),
        ({"small": {"ffn": 45}}, ""), ({"head": (12, 9, 7)}, ""), ({"xl": {"head": 5.8}}, "")],
    (MODEL, "e"): [
        ("133.42e12", "two matrices (no W3)"), (("149.8e12", "x33.2"), "is it a slip in a sum?"),
        (16, "T × T"), (4513336524800, "the context is left at 1,024"),
        ({"flops": 1.495e14, "ffn": 55.2}, "share of the scores")],
    (ADAMW, "a"): [
        ("12 P", "one of the two moments"), ("25.5 GB", "one of the two moments"),
        ({"optimizer_gb": 6.54}, "")],
    (ADAMW, "b"): [
        ((10.49, 26.17, 5), "only one map of T × T"), (5, "only one map of T × T"),
        (4, "the batch is rounded up"), (3.47, "Round down"), (3.5, "Round down"), ((14.4, 34), ""),
        ((15.5, 34, 3), "Your own a and b give a different batch"),
        (("15.52 GB", "24.37 GB", 3), "GiB are called GB"),
        (("15.14 GB", 26.17, 3), "is it a slip in a sum?"),
        ({"a": 15.52, "b": 26.17, "batch": 4}, "the batch is rounded up")],
    (ADAMW, "c"): [(18, "expected"), (20, "expected"), (30, "expected")],
    (ADAMW, "d"): [
        ("5115 hours", "days are called hours"), ("4.6 days", "a factor of 1,000 is lost"),
        ("5.1 days", "a factor of 1,000 is lost"), ("2558 days", "reaches its whole peak"),
        (2188, "the backward pass is left out"),
        (4645, "scores and weighted sums (T × T) are left out")],
}  # fmt: skip

# A sentence is never called wrong, and no number is fished out of it: its facts are shown.
READ = {
    (MODEL, "a"): ["2,127,057,600 parameters, 8.51 GB (7.92 GiB)",
                   "In total about 2,127,056,000 parameters, or roughly 8.51 GB."],
    (MODEL, "b"): ["90.6 GFLOPs per layer × 48 + 164.7 GFLOPs = 4.51 TFLOPs",
                   "2*T*L*(4*d*d+2*d*d_ff), so in total about 3.02 TFLOPs"],
    (MODEL, "c"): ["The head dominates.", "feed-forward > attention > head", "FFN 50 %",
                   ("FFN", "about two thirds")],
    (MODEL, "d"): ["small: attention 50%, ffn 30%, head 20%"],
    (MODEL, "e"): ["Total FLOPs rise to 149.5 TFLOPs, 33x more for a 16x longer context."],
    (ADAMW, "a"): ["16P = 34 GB", "parameters 4P, gradients 4P, optimizer state 8P"],
    (ADAMW, "b"): ["14.4 * B + 34", "three"],
    (ADAMW, "c"): ["3P + 4P + 5P + 2P = 14P"],
    (ADAMW, "d"): ["5115 days, since a step takes 1105 s"],
}  # fmt: skip

# No unit is guessed, and no label.
UNCLEAR = {
    (MODEL, "a"): [
        (2.13, "in billions, or in which unit"), ((2127057600, 8.508), "0.5 GB"),
        ({"parameters": 2.127, "gb": 8.51}, "in billions"), ("2e9", "too coarse"), ("", "Hand in")],
    (MODEL, "b"): [(4.51, "1.2 TFLOPs"), ([1e12, 3e12], "too coarse")],
    (MODEL, "d"): [
        ((19.35, 24.24, 28.57), "in which unit"), ({"tiny": 3e11}, "'tiny'"),
        (("22.6 %", "10.2 %", "5.8 %"), "Which part"), ((), "Hand in")],
    (MODEL, "e"): [("55.2 %", "Which part"), (..., "Hand in")],
}  # fmt: skip
