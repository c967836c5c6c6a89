"""Prose about costs: what is right is never refused, wrong totals are found all the same."""

import pytest

from workbook.study.verbs import check

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"


@pytest.mark.parametrize(
    ("problem", "part", "attempt"),
    [
        (
            MODEL,
            "a",
            "With vocab 50,257, d_model 1600 and 48 layers the embedding and LM head have "
            "80,411,200 parameters each; each block has 4*1600^2 + 3*1600*6400 + 2*1600 = "
            "40,963,200; the final norm 1,600. In total 2,127,057,600 parameters, needing "
            "8.51 GB (7.92 GiB) in fp32.",
        ),
        (
            MODEL,
            "a",
            "GPT-2 XL has roughly 2.13 billion trainable parameters. At 4 bytes per "
            "parameter (single precision) this requires approximately 8.5 GB to load.",
        ),
        (
            MODEL,
            "b",
            "Per layer: QKV projections 6Td^2 = 15.7 GFLOPs, QK^T 2T^2 d = 3.36 GFLOPs, "
            "attention-weighted V 3.36 GFLOPs, output projection 5.24 GFLOPs, SwiGLU 6 T d "
            "d_ff = 62.9 GFLOPs. Sum per layer 90.6 GFLOPs, times 48 = 4.35 TFLOPs. LM head "
            "2TdV = 0.165 TFLOPs. Total ≈ 4.51 TFLOPs.",
        ),
        (
            MODEL,
            "c",
            "The SwiGLU feed-forward network dominates with about 67% of total FLOPs, "
            "followed by the attention projections at 22%.",
        ),
        (
            MODEL,
            "c",
            "In GPT-2 XL, the feed-forward layers account for the largest share (about 3.02 "
            "TFLOPs of 4.51 TFLOPs, 66.9%), whereas attention needs 29.4% and the LM head "
            "3.6%.",
        ),
        (
            MODEL,
            "c",
            "Matrix multiplies in the position-wise feed-forward networks need the most "
            "FLOPs because d_ff is 4 times d_model and there are three matrices, while "
            "attention scores matter only for long contexts.",
        ),
        (
            MODEL,
            "c",
            "Attention uses 29.4% while the FFN uses 66.9% of all FLOPs so the FFN is "
            "clearly the most expensive.",
        ),
        (
            MODEL,
            "d",
            "For small (3.50e11 FLOPs): FFN 49.8 %, projections 16.6 %, scores 11.1 %, head "
            "22.6 %. Medium (1.03e12): 59.9, 20.0, 10.0, 10.2 %. Large (2.26e12): 64.2, "
            "21.4, 8.6, 5.8 %. As the model grows, the FFN and the projections take "
            "proportionally more, the LM head and the scores proportionally less.",
        ),
        (
            MODEL,
            "d",
            "As model size increases, the proportion of FLOPs spent in the output "
            "projection shrinks from 22.6% to 3.6%, and the share of the feed-forward "
            "network increases from 49.8% to 66.9%.",
        ),
        (
            MODEL,
            "e",
            "Total FLOPs rise from 4.51 TFLOPs to 149.5 TFLOPs, 33x more for a 16x longer "
            "context; attention scores and weighted sums go from 7.1% to 55.2% while the "
            "FFN falls from 66.9% to 32.3%.",
        ),
        (
            MODEL,
            "e",
            "With a context of 16,384 the FLOPs increase by about 33x to 1.495e14; the "
            "quadratic attention score computation becomes the dominant cost, at about 55% "
            "of the total.",
        ),
        (
            ADAMW,
            "a",
            "Parameters: P = 2VD + L(12D^2 + 2D) + D floats, 4P bytes. Gradients: 4P bytes. "
            "Optimizer: 8P bytes. Activations per layer: RMSNorm 2BTD, QKV 3BTD, scores "
            "BHT^2, softmax BHT^2, weighted sum BTD, output BTD, W1 4BTD, SiLU 4BTD, W2 "
            "BTD, so 16BTD + 2BHT^2; final norm BTD, logits BTV, cross entropy BTV. Total: "
            "16P + 4(L(16BTD + 2BHT^2) + BTD + 2BTV).",
        ),
        (
            ADAMW,
            "b",
            "For XL P = 1,635,537,600, so 16P = 26.17 GB. The activations take 4 * (48 * "
            "(16*1024*1600 + 2*25*1024^2) + 1024*1600 + 2*1024*50257) = 15.52 GB per "
            "sequence. Memory = 15.52 * batch_size + 26.17 GB, hence batch_size <= 3.47, "
            "i.e. 3.",
        ),
        (
            ADAMW,
            "b",
            "Memory is about 15.5 GB × batch_size + 26.2 GB. Setting it to 80 GB gives "
            "3.47, therefore the maximum batch size is 3.",
        ),
        (
            ADAMW,
            "c",
            "First moment: 3 FLOPs per parameter; second moment: 4; bias-corrected update: "
            "5; weight decay: 2. So 14P FLOPs, about 22.9 GFLOPs for GPT-2 XL.",
        ),
        (
            ADAMW,
            "c",
            "m needs 2 multiplications and 1 addition, v needs 3 multiplications and 1 "
            "addition, the update needs sqrt, add, divide, multiply, subtract, and decay 2, "
            "so roughly 14 FLOPs per parameter.",
        ),
        (
            ADAMW,
            "d",
            "Forward FLOPs per sequence are 3.507e12; forward+backward is 3x = 1.052e13; "
            "batch 1024 gives 1.077e16 per step; 400K steps 4.309e21. At 9.75e12 FLOP/s "
            "this is 4.42e8 s = 5115 days = 14 years.",
        ),
    ],
)
def test_right_prose_is_read_and_facts_are_offered(problem, part, attempt):
    report = check(problem, attempt, part)
    assert report.status == "read" and report.facts, report


@pytest.mark.parametrize(
    ("problem", "part", "attempt", "mistake"),
    [
        (
            MODEL,
            "a",
            "The number of parameters is 2*V*d + L*(4d^2+3*d*d_ff+2d) which gives about "
            "2,127,056,000 parameters, or roughly 8.51 GB in single precision.",
            "the final norm is left out",
        ),
        (
            MODEL,
            "b",
            "Adding the products for all the layers (QKV, output and the two FFN matrices) "
            "we get 2*T*L*(4*d*d+2*d*d_ff) so in total about 3.02 TFLOPs are needed.",
            "T × T",
        ),
        (
            MODEL,
            "c",
            "The attention mechanism needs the most FLOPs because the score computation is "
            "quadratic in the context length, so it is the bottleneck here.",
            "Put each product's FLOPs in a table",
        ),
        (
            MODEL,
            "c",
            "Most of the compute goes to the output projection onto the vocabulary since "
            "50,257 is such a large number compared to d_model.",
            "there is only one of it",
        ),
        (
            MODEL,
            "e",
            "With the longer context of 16,384 the total number of FLOPs becomes 133.42 "
            "TFLOPs, and attention is the dominating part of the model.",
            "two matrices (no W3)",
        ),
        (
            MODEL,
            "d",
            "Attention share is 19.35% for small, 24.24% for medium and 28.57% for large, "
            "so attention takes proportionally more as the model grows larger.",
            "d_ff is left at 6,400",
        ),
        (
            ADAMW,
            "b",
            "The expression is 10.49 * batch_size + 26.17 GB so that for an 80 GB card the "
            "maximum batch size would be 5 sequences.",
            "only one map of T × T",
        ),
        (
            ADAMW,
            "d",
            "Total training FLOPs are 3.9e21, effective throughput is 9.75 TFLOP/s, so that "
            "training takes roughly 400,000 seconds or about 4.6 days in all.",
            "a factor of 1,000 is lost",
        ),
        (
            ADAMW,
            "c",
            "The update takes 10 FLOPs per parameter: we count the moments, the square root "
            "and the division, so it is 10P in total for one step.",
            "counts once in the moments",
        ),
    ],
)
def test_wrong_numbers_and_claims_in_prose_are_found(problem, part, attempt, mistake):
    report = check(problem, attempt, part)
    assert report.status == "wrong" and mistake in report.message, report


def test_the_steps_of_a_sum_are_not_refused():
    steps = (
        "- Q, K, V projections: 3 × 2 × 1024 × 1600 × 1600 = 15.73e9\n"
        "- Q K^T: 2 × 1024 × 1024 × 1600 = 3.36e9\n"
        "- scores V: 3.36e9\n"
        "- output: 5.24e9\n"
        "- FFN: 3 × 2 × 1024 × 1600 × 6400 = 62.9e9\n"
        "Total over 48 layers: 4.349e12; LM head: 1.647e11; Total: 4.513e12 FLOPs\n"
    )
    assert check(MODEL, steps, "b").status == "correct"
