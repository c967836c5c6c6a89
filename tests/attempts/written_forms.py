"""Written answers in forms that few have: tables, dicts in dicts, steps beside their sum."""

import math

import pandas as pd

MODEL, ADAMW, USE = "transformer_accounting", "adamwAccounting", "tokenizer_experiments"
HYPHENS = b"-" * 64
MATMULS = {"qkv": 754974720000, "scores": 161061273600, "av": 161061273600, "out": 251658240000}
REST = {"ffn": 3019898880000, "head": 164682137600}
FORWARD, LONG = 4513336524800, 149522795724800


def late(rate, first=25.0):
    """Losses of the toy where t begins at 1."""
    found = [first]
    for t in range(9):
        found.append(found[-1] * (1 - 0.02 * rate / math.sqrt(t + 2)) ** 2)
    return found


RIGHT = {
    ("unicode1", "a"): [{"name": "NUL", "number": 0}],
    ("unicode1", "b"): [{"print": "\x00", "repr": r"'\x00'"}, {"print": 1, "repr": 6}],
    ("unicode1", "c"): [{"length": 21}, {"before\x00after": 12}],
    ("unicode2", "a"): [
        pd.Series({"utf-8": 5, "utf-16": 12}),
        pd.DataFrame({"utf-8": [5, 15], "utf-16": [12, 12]}, index=["hello", "こんにちは"]),
        {"utf-8": {"hello": 5, "é": 2}, "utf-16": {"hello": 12, "é": 4}},
        {"utf-8": b"hello", "utf-16": "hello".encode("utf-16")},
    ],
    ("unicode2", "b"): [{"input": "é".encode(), "got": "UnicodeDecodeError"}, {"input": "é"}],
    ("unicode2", "c"): [{"bytes": b"\xff\xff", "reason": "FF never occurs"}],
    ("train_bpe_expts_owt", "a"): [{"hours": 6, "gigabytes": 40, "longest": HYPHENS}],
    (USE, "a"): [
        {"ts": 4.0, "owt": 4.5},
        {"ts": [4.0, 4.2], "owt": [4.4, 4.5]},
        pd.Series({"ts": 4.1, "owt": 4.4}),
        {"owt": {"bytes_per_token": 4.4}},
    ],
    (USE, "b"): [{"ts": 3.3, "owt": 4.4}],
    (USE, "d"): [{"max": 65535}, (0, 65535)],
    ("learning_rate_tuning", None): [
        {"lr 1e+02": [25, 25, 4.289, 0.1026, 0, 0]},
        pd.DataFrame({1000: [25, 9025, 1558763]}),
    ],
    ("generate", None): [{"tokens": 300}, (300, "It is fluent.")],
    (MODEL, "a"): [pd.Series({"parameters": 2127057600, "gb": 8.508})],
    (MODEL, "b"): [
        [*MATMULS.items(), *REST.items()],
        {"attention": MATMULS, **REST, "total": FORWARD},
        {"attention": sum(MATMULS.values()), **REST},
    ],
    (MODEL, "c"): ["position-wise feed-forward", {"part": "ffn", "share": 66.9}],
    (MODEL, "d"): [pd.DataFrame({"ffn": [49.8, 59.9], "head": [22.6, 10.2]}, ["small", "medium"])],
    (MODEL, "e"): [
        (FORWARD, LONG),
        (FORWARD, LONG, 33.1),
        (LONG, 33.1, 65.9),
        {"total_pflops": 0.1495},
        {"flops": LONG, "increase": "33.1x"},
        {"ffn": 32.3 / 100, "scores": 55.2 / 100},
    ],
    (ADAMW, "a"): [{"static_gb": 26.2}],
    (ADAMW, "c"): [[3, 4, 5, 2], [3, 4, 5, 2, 14], {"moments": 7, "update": 5, "decay": 2}],
}
WRONG = {
    ("unicode1", "b"): [((6, 6), "not the same"), (("\x00", "\x00"), "not the same")],
    ("unicode1", "c"): [({"length": 20}, "not counted"), ({"before\x00after": 11}, "not counted")],
    ("unicode2", "a"): [({"utf-8": {"hello": 5}, "utf-16": {"hello": 5}}, "not bytes")],
    ("unicode2", "c"): [({"bytes": b"\xc3\xa9"}, "can be decoded")],
    ("train_bpe_tinystories", "a"): [
        ({"seconds": 62, "gigabytes": 45}, "Read the corpus in pieces"),
        ({"seconds": -3}, "allows 30 minutes"),
    ],
    ("train_bpe_expts_owt", "a"): [({"hours": 14, "longest": HYPHENS}, "allows 12 hours")],
    (USE, "a"): [({"ts": 0.24, "owt": 0.22}, "upside down")],
    (USE, "b"): [({"ts": 4.9, "owt": 4.4}, "swapped")],
    (USE, "d"): [({"max": 32767}, "int16"), ((0, 255), "uint8")],
    ("learning_rate_tuning", None): [({10: late(10)}, "t begins at 0")],
    ("generate", None): [({"tokens": 100}, "too short"), ((100, "fluent"), "too short")],
    (MODEL, "b"): [
        ({"attention": REST["ffn"], "ffn": sum(MATMULS.values()), "head": REST["head"]}, "mixed up")
    ],
    (MODEL, "c"): [
        ({"part": "attention", "share": 66.9}, "three of d × d_ff"),
        ("QKV projections", "d × d"),
        ("the vocabulary projection", "only one of it"),
    ],
    (MODEL, "e"): [(256, "256 times as many")],
    (ADAMW, "c"): [([3, 4], "Count, for one"), ("6P", "forward and backward pass")],
}
READ = {}
UNCLEAR = {
    (USE, "a"): [({"ts": {"bytes": 41000, "tokens": 10000}}, "not know this form")],
    (USE, "d"): [(31999, "where uint16 ends")],
    ("train_bpe_expts_owt", "b"): [({"shared": 7000}, "not know this form")],
    ("pre_norm_ablation", None): [((1.41, 1.44), "not know this form")],
    (MODEL, "e"): [({"before": FORWARD, "after": LONG}, "does not know what 'before' is")],
    (ADAMW, "c"): [({"params": 1635537600, "total": 22897526400}, "not asked for here")],
    (ADAMW, "d"): [({"total_flops": 4.309e21, "days": 5115}, "not asked for here")],
}
