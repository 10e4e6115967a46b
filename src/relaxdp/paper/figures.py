"""The figures: of both experiments, of formulas, and of the smaller experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.paper.repeated import SHORT, AttackedRuns, Population
from relaxdp.paper.style import HEIGHT, LOOKS, MARKS, SHADES, WIDTH, figure, look, plain

Floats = NDArray[np.float64]


def estimates_of_one(found: dict[str, AttackedRuns], population: Population, shown: int) -> Any:
    """Draw the share of ones over the rounds."""
    drawn, axes = figure(height=HEIGHT + 0.3)
    rounds = np.arange(1, len(population.levels) + 1)
    _estimates(axes, rounds, found, population, 1, shown)
    axes.set(xlabel="round", ylabel="estimated share of ones", xticks=rounds)
    above = axes.secondary_xaxis("top")
    above.set_xticks(rounds, [f"{float(level):.2f}" for level in population.levels], fontsize=8)
    above.set_xlabel("ε after the round")
    axes.set_ylim(top=1.04)
    axes.legend(loc="upper right", ncols=2)
    return drawn


def estimates_of_all(found: dict[str, AttackedRuns], population: Population, shown: int) -> Any:
    """Draw the share of every value over the levels, one panel each, on one scale."""
    drawn, axes = figure(2, 3, width=2 * WIDTH - 1.6, height=2 * HEIGHT - 1.2, sharey=True)
    levels = np.array([float(level) for level in population.levels])
    panels = axes.ravel()
    for value, (panel, letter) in enumerate(zip(panels, "abcde", strict=False)):
        _estimates(panel, levels, found, population, value, shown)
        panel.set_xlabel("ε")
        panel.set_title(f"({letter}) value {value + 1}, true share {population.shares[value]:.3f}", loc="left")
    for panel in (panels[0], panels[3]):
        panel.set_ylabel("estimated share")
    panels[5].axis("off")
    panels[5].legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize=10)
    return drawn


def variances(measured: dict[str, Floats], ours: Floats, theirs: Floats) -> Any:
    """Draw measured variances as marks and theory as lines."""
    drawn, axes = figure()
    rounds = np.arange(1, len(ours) + 1)
    axes.plot(rounds, 1000 * theirs, **look("other theory"), label="theory, noisy sampling")
    axes.plot(rounds, 1000 * ours, **look("theory"), label="theory, relaxation")
    for name, runs in measured.items():
        axes.plot(rounds, 1000 * runs, **{**look(name), "linestyle": ""}, label=_said(name))
    axes.set_yscale("log")
    axes.set(xlabel="round", ylabel="variance × objects", xticks=rounds)
    plain(axes.yaxis, [1, 2, 5, 10, 20])
    axes.legend(loc="upper right")
    return drawn


def attacks(found: dict[str, AttackedRuns], population: Population, shown: int) -> Any:
    """Draw the error rates of the attacks with the deviation between runs."""
    drawn, axes = figure()
    places = np.arange(len(SHORT))
    for shift, (name, each) in zip(np.linspace(-0.1, 0.1, len(found)), found.items(), strict=True):
        rates = np.array([each.error_rates[attack][:shown] for attack in SHORT])
        bars = {"yerr": rates.std(axis=1, ddof=1), **look(name), "linestyle": ""}
        axes.errorbar(places + shift, rates.mean(axis=1), **bars, label=_said(name))
    axes.axhline(population.least_error_rate, **look("theory"), label="theoretical minimum")
    axes.set_xticks(places, [attack.replace(" ", "\n") + f"\n({short})" for attack, short in SHORT.items()])
    axes.set(ylabel="error rate (mean ± σ of the runs)", xlim=(-0.5, len(SHORT) - 0.5))
    axes.grid(visible=False, axis="x")
    axes.legend(loc="upper left")
    return drawn


def _estimates(
    axes: Any, x: NDArray[Any], found: dict[str, AttackedRuns], population: Population, value: int, shown: int
) -> None:
    """Draw the first sampler as a hatched band, others as error bars, and theory as broken lines."""
    share, deviation = population.shares[value], np.sqrt(population.variances()[:, value])
    width, small = (x[1] - x[0]) * 0.13, {"markersize": 4}
    for number, (name, each) in enumerate(found.items()):
        runs = each.estimates[:, value, :shown]
        mean, spread = runs.mean(axis=-1), 2 * runs.std(axis=-1, ddof=1)
        if number == 0:
            colour = LOOKS[name].colour
            band = {"facecolor": f"{colour}22", "edgecolor": f"{colour}88", "hatch": "////", "linewidth": 0}
            axes.fill_between(x, mean - spread, mean + spread, **band, label=f"{_said(name)}, 2σ")
            axes.plot(x, mean, **look(name), **small, label=f"{_said(name)}, mean")
        else:
            bars = {**look(name), **small, "linestyle": "", "elinewidth": 1.2}
            axes.errorbar(x + number * width, mean, spread, **bars, label=f"{_said(name)}, mean and 2σ")
    axes.plot(x, np.full(len(x), share), **look("theory"), linewidth=1.0, label="theory, mean and 2σ")
    for side in (-2, 2):
        axes.plot(x, share + side * deviation, **look("theory"), linewidth=1.0)


def _said(name: str) -> str:
    return f"relaxation, {name}" if name in ("path", "Algorithm 1") else name


_BETA = r"$\varepsilon_\beta$"
_EVERY = 7  # a mark on every 7th round, the first included, so that lines stay visible


def sampling_guarantees(curves: Mapping[Decimal, Sequence[float]], limit: float) -> Any:
    """Draw ε_ns(K), one curve for each ε_β."""
    drawn, axes = figure()
    for mark, (beta, curve) in zip(MARKS, curves.items(), strict=True):
        rounds = np.arange(1, len(curve) + 1)
        options = {**look("noisy sampling"), "marker": mark, "markevery": _EVERY}
        axes.plot(rounds, curve, **options, label=f"{_BETA} = {beta}")
    axes.axhline(limit, **look("theory"), label=r"the limit $\varepsilon_\alpha$")
    axes.set(
        xlabel="number of noisy samples K",
        ylabel=r"guarantee $\varepsilon_{ns}(K)$ of one bit",
        xlim=(0, 51),
        ylim=(0, 1.08),
    )
    axes.legend(loc="lower right")
    return drawn


def sampling_variances(sampling: Mapping[Decimal, Floats], relaxation: Mapping[Decimal, Floats]) -> Any:
    """Draw the variances of noisy sampling and relaxation, marks telling ε_β, lines and colours the method."""
    drawn, axes = figure()
    for method, curves in (("noisy sampling", sampling), ("relaxation", relaxation)):
        for mark, (_, curve) in zip(MARKS, curves.items(), strict=True):
            rounds = np.arange(1, len(curve) + 1)
            axes.plot(rounds, curve, **{**look(method), "marker": mark, "markevery": _EVERY})
    axes.set_yscale("log")
    plain(axes.yaxis, [1, 2, 5, 10, 20, 50, 100, 200, 500])
    axes.set(xlabel="number of rounds K", ylabel="variance of an estimated bit (N = 1)", xlim=(0, 51))
    handles = [axes.plot([], [], **{**look(method), "marker": ""}, label=method)[0] for method in _BOTH]
    handles += [
        axes.plot([], [], color="#555555", linestyle="", marker=mark, label=f"{_BETA} = {beta}")[0]
        for mark, beta in zip(MARKS, sampling, strict=True)
    ]
    axes.legend(handles=handles, loc="upper right", ncols=2)
    return drawn


_BOTH = ("noisy sampling", "relaxation")


def linear_variances(curves: Mapping[int, Sequence[tuple[float, float]]]) -> Any:
    """Draw the variance over the rounds of linear relaxation."""
    drawn, axes = figure()
    for mark, (rounds, curve) in zip(MARKS, curves.items(), strict=True):
        options = {**look("relaxation"), "marker": mark, "markevery": _marked(rounds)}
        axes.plot(
            np.arange(1, rounds + 1), [variance for _, variance in curve], **options, label=f"K = {rounds} rounds"
        )
    axes.set_yscale("log")
    plain(axes.yaxis, [1, 2, 5, 10, 20, 50, 100])
    axes.set(xlabel="round", ylabel="variance of an estimated bit (N = 1)", xlim=(0, 51))
    axes.legend(loc="upper right")
    return drawn


def _marked(rounds: int) -> list[int]:
    """Return about ten places for marks, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, rounds - 1, min(rounds, 10))})


def guarantees(curve: Sequence[tuple[float, float, float, float]]) -> Any:
    """Draw what one relaxation from ε = 1 seems to cost, and what it costs."""
    drawn, axes = figure()
    second, alone, added, together = np.array(curve).T
    axes.plot(second, added, color=SHADES[1], linestyle=":", label="basic composition: 2ε₁ + ε₂")
    axes.plot(second, alone, color=SHADES[2], linestyle="-.", label="the step alone: ε₁ + ε₂")
    axes.plot(second, together, **{**look("relaxation"), "marker": "", "linestyle": "-"}, label="both outputs: ε₂")
    place = int(np.argmin(np.abs(second - 2)))
    for height in (added[place], alone[place], together[place]):
        axes.plot(2, height, "o", color="black")
        axes.annotate(f"{height:.0f}", (2, height), xytext=(6, -11), textcoords="offset points")
    axes.set(xlabel="ε₂, the second level (ε₁ = 1)", ylabel="guarantee ε", xlim=(1, 3.03), ylim=(0, 5.2))
    axes.set_xticks([1, 1.5, 2, 2.5, 3])
    axes.legend(loc="upper left")
    return drawn


def split_budgets(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    """Draw the variances of relaxation and of a split budget, one panel for each number of values."""
    alphabets = sorted({row[0] for row in rows})
    drawn, panels = figure(1, len(alphabets), width=2 * WIDTH - 1.6, height=HEIGHT, sharey=True)
    for panel, values in zip(panels, alphabets, strict=True):
        part = [row for row in rows if row[0] == values]
        x = np.arange(len(part))
        for method, place in (("split budget", 3), ("relaxation", 2)):
            panel.plot(x, [row[place] for row in part], **{**look(method), "marker": ""}, label=f"{method}, theory")
        shift = -0.06
        for place, name in list(enumerate(columns))[4:]:
            sampler, method = name.split(", ")
            mark = {"color": LOOKS[method].colour, "marker": LOOKS[sampler].marker, "linestyle": ""}
            face = "white" if shift > 0 else LOOKS[method].colour
            panel.plot(
                x + shift, [row[place] for row in part], **mark, markerfacecolor=face, label=f"{method}, {sampler}"
            )
            shift = shift if method == "relaxation" else -shift
        panel.set_yscale("log")
        panel.set_title(f"m = {values}", loc="left")
        panel.set_xticks(x, [str(row[1]) for row in part])
        panel.set_xlabel("ε after the release")
    plain(panels[0].yaxis, [0.1, 1, 10, 100, 1000, 10000])
    panels[0].set_ylabel("variance × objects")
    panels[0].legend(loc="upper right")
    return drawn


def mean_estimates(
    curves: Mapping[str, tuple[Floats, Floats]], levels: Sequence[Decimal], truth: float, shown: int
) -> Any:
    """Draw estimated means by both formulas."""
    drawn, axes = figure()
    x = np.arange(len(levels))
    shifts = np.linspace(-0.15, 0.15, 2 * len(curves)).tolist()
    for formula, said in ((1, "l + h·π (as printed)"), (0, "l + (h − l)·π (corrected)")):
        for name, pair in curves.items():
            runs = pair[formula][:, :shown]
            bars = {**look(name), "linestyle": "", "markerfacecolor": "white" if formula else LOOKS[name].colour}
            spread = 2 * runs.std(axis=1, ddof=1)
            axes.errorbar(x + shifts.pop(0), runs.mean(axis=1), spread, **bars, label=f"{said}, {name}")
    axes.axhline(truth, **look("theory"), label="true mean")
    axes.set_xticks(x, [str(level) for level in levels])
    axes.set(xlabel="ε", ylabel="estimated mean (numbers in 20 … 80)")
    axes.set_ylim(top=axes.get_ylim()[1] + 12)
    axes.legend(loc="upper right", ncols=2, fontsize=7.5)
    return drawn


def coalitions(rates: Mapping[str, Sequence[float]], bought: Sequence[float], least: Sequence[float]) -> Any:
    """Draw the error rates of buyers who pool what they bought."""
    drawn, axes = figure()
    for attack, curve in rates.items():
        # The last output and maximum likelihood are one line; the first is drawn wide, so that both are seen.
        width = 5 if attack == "last output" else None
        axes.plot(bought, curve, **look(attack), linewidth=width, label=attack)
    axes.plot(bought, least, **look("theory"), linewidth=1.0, label="theoretical minimum")
    axes.set(xlabel="every level bought from 0.1 up to ε", ylabel="error rate of guessed truths")
    axes.legend(loc="lower left")
    return drawn
