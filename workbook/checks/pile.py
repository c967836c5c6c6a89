"""How long the Pile takes at a measured speed: a division in which much can slip."""

from typing import Any

from workbook.checks.figures import is_explained, is_prose, quantities, sentence, text_of
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong

PILE = 825e9  # bytes
HOUR, DAY = 3600.0, 86_400.0
SLOW = 20_000  # bytes per second: even a simple encoder in Python is faster
EXACT = 0.01  # relative
# What the answer is multiplied by when somebody slips, and the slip.
SLIPS = {
    1024**3 / 1000**3: "825 GiB were divided: a GB is 10**9 bytes, a GiB 2**30.",
    1000**3 / 1024**3: "The rate and the Pile do not count in the same units: a GB is 10**9 bytes.",
    1000**2 / 1024**2: "The rate was taken in MiB, 2**20 bytes: an MB is 10**6.",
    1024**2 / 1000**2: "The rate was taken in MiB, 2**20 bytes: an MB is 10**6.",
    8.0: "Bits were divided by bytes: that is 8 times too much.",
    1 / 8: "Bytes were divided by bits: that is 8 times too little.",
    1000.0: "A factor of 1,000 too much: 825 GB are 825 * 10**9 bytes.",
    1 / 1000: "A factor of 1,000 was lost: 825 GB are 825 * 10**9 bytes.",
    1e6: "A factor of a million too much: mind the MB of the rate.",
    1e-6: "A factor of a million was lost: mind the MB of the rate.",
    24.0: "Hours were taken for days.",
    1 / 24: "Days were taken for hours.",
    60.0: "A factor of 60 too much: minutes and hours, or seconds and minutes.",
    1 / 60: "A factor of 60 was lost: minutes and hours, or seconds and minutes.",
    3600.0: "Seconds were taken for hours.",
    1 / 3600: "Hours were taken for seconds.",
    86_400.0: "Seconds were taken for days.",
}
FACTS = (
    "bytes per second, and on which machine",
    "825 * 10**9 bytes divided by that, in hours or days",
)
HOW = 'a pair (bytes per second, hours), or a sentence such as "2 MB/s, so 4.8 days"'


def pile(attempt: Any) -> str | Facts:
    """What holds of a rate and the time that the Pile takes at it."""
    if type(attempt) in (int, float):
        raise NotAttempted(f"How long does the Pile take at that speed? Hand in {HOW}.")
    if type(attempt) in (tuple, list) and len(attempt) == 2:
        if all(type(item) in (int, float) for item in attempt):
            return _judged(float(attempt[0]), attempt[1] * HOUR, HOUR)
        attempt = ", ".join(map(str, attempt))
    text = text_of(sentence(attempt) if type(attempt) is dict else attempt, HOW)
    found = quantities(text)
    rates = [q.scaled for q in found if q.kind == "rate"]
    times = [q for q in found if q.kind == "seconds" and q.value > 0]
    pairs = [(rate, time.scaled, time.scaled / time.value) for rate in rates for time in times]
    fitting = [pair for pair in pairs if pair[0] > 0 and _agrees(*pair)]
    if len(pairs) > 1 and not fitting:  # such as "5 MB in 2 s, so 2.5 MB/s, so 92 hours"
        long = [pair for pair in pairs if pair[1] >= HOUR]
        pairs = long if len(long) == 1 else []
    praise = _judged(*(fitting or pairs)[0]) if pairs else None
    if is_explained(text) or (praise is None and is_prose(text)):
        return Facts(filter(None, (praise, *FACTS)))
    if praise is None:
        raise NotAttempted(f"A speed and a time are needed. Hand in {HOW}.")
    return praise


def _judged(rate: float, claimed: float, unit: float) -> str:
    """Praise for a right division; `claimed` is in seconds, `unit` how it was written."""
    if rate <= 0 or claimed <= 0:
        raise Wrong("Speed and time are more than nothing.", got=min(rate, claimed))
    exact = PILE / rate
    if not _agrees(rate, claimed, unit):
        _refuse(rate, claimed, exact, unit)
    praise = f"The division is right: {exact / HOUR:,.1f} hours, or {exact / DAY:,.2f} days."
    if rate < SLOW:
        praise += (
            f" But {rate:,.0f} B/s is very slow, a thousand times below what an encoder reaches:"
            " do you search all the merges anew for each pre-token?"
        )
    return praise


def _agrees(rate: float, claimed: float, unit: float) -> bool:
    """True for the exact value, and for one that was rounded to a whole unit, up or down."""
    exact, whole = PILE / rate, claimed / unit
    rounded = whole.is_integer() and whole >= 5 and abs(whole - exact / unit) < 1
    return rounded or abs(claimed / exact - 1) <= EXACT


def _refuse(rate: float, claimed: float, exact: float, unit: float) -> None:
    names = {HOUR: "hours", DAY: "days", 60.0: "minutes", 1.0: "seconds"}
    name = names.get(unit, "hours")
    unit = unit if unit in names else HOUR
    factor = claimed / exact
    mistake = next((slip for by, slip in SLIPS.items() if abs(factor / by - 1) <= EXACT), None)
    raise Wrong(
        "Speed and time do not fit together.",
        given=f"825e9 bytes / {rate:,.0f} bytes per second",
        expected=Words(f"{exact / unit:,.5g} {name}"),
        got=Words(f"{claimed / unit:,.5g} {name}"),
        mistake=mistake,
    )
