"""The figures of the two experiments: estimates with their bands, variances, error rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaxdp.paper.repeated import SHORT, Measured, Population
from relaxdp.paper.style import HEIGHT, LOOKS, WIDTH, figure, look, plain

Floats = NDArray[np.float64]


def estimates_of_one(found: dict[str, Measured], population: Population, shown: int) -> Any:
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


def estimates_of_all(found: dict[str, Measured], population: Population, shown: int) -> Any:
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


def attacks(found: dict[str, Measured], population: Population, shown: int) -> Any:
    """Draw the error rates of the attacks with the deviation between runs."""
    drawn, axes = figure()
    places = np.arange(len(SHORT))
    for shift, (name, each) in zip(np.linspace(-0.1, 0.1, len(found)), found.items(), strict=True):
        rates = np.array([each.error_rates[attack][:shown] for attack in SHORT])
        bars = {"yerr": rates.std(axis=1, ddof=1), **look(name), "linestyle": ""}
        axes.errorbar(places + shift, rates.mean(axis=1), **bars, label=_said(name))
    axes.axhline(population.least_error_rate, **look("theory"), label="theoretical minimum")
    axes.set_xticks(places, [f"{attack}\n({short})" for attack, short in _wrapped()])
    axes.set(ylabel="error rate (mean ± σ of the runs)", xlim=(-0.5, len(SHORT) - 0.5))
    axes.grid(visible=False, axis="x")
    axes.legend(loc="upper left")
    return drawn


def _estimates(
    axes: Any, x: NDArray[Any], found: dict[str, Measured], population: Population, value: int, shown: int
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


def _wrapped() -> list[tuple[str, str]]:
    return [(attack.replace(" ", "\n"), short) for attack, short in SHORT.items()]
