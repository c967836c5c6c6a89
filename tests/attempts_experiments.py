"""A right and a wrong attempt for each check of notebook 08, in either edition and profile."""

import math

BASE = {"name": "base", "why": "to begin with", "steps": 800, "batch_size": 8, "seconds": 80.0}
BASE |= {"context_length": 128, "tokens": 819_200, "validation_loss": 1.96}
HOT = BASE | {"name": "hot", "why": "three times the rate", "validation_loss": math.nan}
SWEEP = {1e-4: 1.98, 1e-3: 1.44, 3e-3: 1.41, 1e-2: 1.47}

ATTEMPTS = {
    ("experiment_log", None): ([BASE, HOT], [BASE, HOT | {"validation_loss": 0.1}]),
    ("learning_rate", "a"): (SWEEP, {rate: SWEEP[rate] for rate in (1e-4, 1e-3, 3e-3)}),
    ("learning_rate", "b"): ((3e-3, 2e-2), (6e-3, 1e3)),
    ("batch_size_experiment", None): (
        {1: 1.9, 8: 1.6, 32: 1.5, 64: 1.5, 128: 1.6},
        {8: 1.6, 32: 1.5},
    ),
    ("layer_norm_ablation", None): (
        {("pre", 3e-3): 1.41, ("none", 3e-3): math.nan, ("none", 1e-3): 1.62},
        {("pre", 3e-3): 1.41, ("none", 3e-3): math.nan},
    ),
    ("pre_norm_ablation", None): ({"pre": 1.41, "post": 1.44}, {"pre": 1.41, "post": -1.44}),
    ("no_pos_emb", None): (
        {"rope": [1.41, 1.42], "none": [1.47, 1.46]},
        {"rope": 1.41, "none": 0.1},
    ),
    ("swiglu_ablation", None): (2_048, 1_344),
    ("main_experiment", None): (
        {"tinystories": 1.41, "owt": 3.9},
        {"tinystories": 1.41, "owt": 0.521},
    ),
    ("leaderboard", None): ((3.3, 44.0), (3.3, 100.0)),
}
