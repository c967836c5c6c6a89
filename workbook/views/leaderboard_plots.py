"""The pictures of the leaderboard: who stands where, and the losses as time goes by."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from matplotlib.axes import Axes

from workbook.views.experiments import COLOURS, FINAL, Groups, along, curves
from workbook.views.plots import BLUE, GREEN, GREY, INK, _axes

SMOOTH = 5  # logged training losses that are drawn as their mean


def standings(
    entries: Mapping[str, Sequence[float]], helped: Sequence[str], ax: Axes | None = None
) -> Axes:
    """A row an entry, the lowest mean on top: its losses as dots, and the range of the first one.

    Those that `helped` are diamonds, the first entry and the last full circles, the rest open ones.
    An entry such as "a + b" is named by what was added last.
    """
    ax = _axes(ax, height=1.0 + 0.23 * len(entries))
    names = sorted(entries, key=lambda name: fmean(entries[name]))
    start, *_, final = entries
    ax.axvspan(
        min(entries[start]), max(entries[start]), color=BLUE, alpha=0.15, linewidth=0,
        label=f"range of “{start}”",
    )  # fmt: skip
    for row, name in enumerate(names):
        ends = name in (start, final)
        colour = BLUE if ends else GREEN if name in helped else GREY
        face = "none" if colour == GREY else colour
        marker = "D" if colour == GREEN else "o"
        losses = entries[name]
        ax.plot(losses, [row] * len(losses), marker, mec=colour, mfc=face, ms=6)
        ax.plot([fmean(losses)], [row], "|", color=INK, ms=14)
    ax.plot([], [], "o", color=BLUE, label="first and last")
    ax.plot([], [], "D", color=GREEN, label="helped")
    ax.plot([], [], "o", mec=GREY, mfc="none", label="did not")
    ax.plot([], [], "|", color=INK, ms=12, label="mean")
    ax.set_yticks(range(len(names)), [short(name) for name in names])
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(FINAL)
    ax.grid(axis="x")
    ax.figure.legend(loc="outside upper center", ncols=5, fontsize=8)
    return ax


def short(name: str) -> str:
    """The name of an entry, of several changes the last.

    >>> short("half the context + SiLU")
    '... + SiLU'
    """
    *before, last = name.split(" + ")
    return f"... + {last}" if before else last


def against_time(groups: Groups, cap: float, ax: Axes | None = None) -> Axes:
    """Loss curves against seconds, and the time at which every run has to end.

    Marked lines are validation losses, thin ones training losses, smoothed.
    """
    ax = curves({f"{name}: validation": runs for name, runs in groups.items()}, "seconds", ax=ax)
    for colour, runs in zip(COLOURS, groups.values(), strict=False):
        for run in runs:
            losses = run.log["train_loss"].dropna().rolling(SMOOTH).mean()
            places = along(run, "seconds")[losses.index]
            ax.plot(places, losses, color=colour, linewidth=0.6, antialiased=False)  # a small file
    ax.relim()
    ax.autoscale()
    ax.axvline(cap, color=INK, linestyle="--", linewidth=1)
    ax.annotate(
        f"limit: {cap:,.0f} s", (cap, 0.97), (-4, 0), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="right", va="top", rotation=90, fontsize=8,
    )  # fmt: skip
    ax.set_ylabel("loss (nats/token)")
    ax.plot([], [], color=INK, linewidth=0.6, label=f"training, mean of {SMOOTH}")
    ax.legend()
    return ax
