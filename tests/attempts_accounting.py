"""A right and a wrong attempt for each check of notebook 04, in either edition."""

from workbook import accounting, config

EDITION = config.edition()
XL = config.gpt2("xl", EDITION)
LONG = config.gpt2("xl", EDITION, context_length=16_384)
ASKED = accounting.asked_model(EDITION)
DEVICE = accounting.asked_device(EDITION)
SECONDS = accounting.training_seconds(
    accounting.step_flops(ASKED, 1_024), 400_000, DEVICE.flops_per_second
)
TIME = SECONDS / {"2025": 86_400, "2026": 3_600}[EDITION]  # in days, in hours

COUNT = accounting.parameters(XL).total
FLOPS = accounting.forward_flops(XL).total
LONG_FLOPS = accounting.forward_flops(LONG).total

ATTEMPTS = {
    ("transformer_accounting", "a"): (COUNT, COUNT - XL.d_model),
    ("transformer_accounting", "b"): (FLOPS, FLOPS // 2),
    ("transformer_accounting", "c"): (
        "the feed-forward layers",
        "the output head",
    ),
    ("transformer_accounting", "e"): (LONG_FLOPS, 16 * FLOPS),
    ("adamwAccounting", "b"): (3, 5),
    ("adamwAccounting", "c"): (14, 3),
    ("adamwAccounting", "d"): (TIME, TIME / 1_000),
}
