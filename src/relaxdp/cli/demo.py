"""`relaxdp demo`: the main job on real data: four releases from a vault, estimates, a crash, and a spent budget."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import typer
from rich.console import Console
from rich.table import Table

from relaxdp import Categorical, Counts, Key, Vault
from relaxdp.errors import BudgetExceededError, TableFileError
from relaxdp.paper.baselines import split_budget
from relaxdp.theory.epsilon import as_epsilon, format_epsilon

LEVELS = ("0.1", "0.5", "1", "2")
VALUES = ["no", "yes"]
COUNTS = (107_727, 106_417)
"""How many of these men did not serve in the Second World War or the Korean War, and how many did.

From samples of the census of the United States: the column `vet_wwko` of the data of D. K. Fetter, How Do Mortgage
Subsidies Affect Home Ownership?, American Economic Journal: Economic Policy 5(2), 2013, as causaldata 0.1.5 holds them
(MIT licence). A single column of yes and no says no more than its two counts: neither the file nor a package is needed.
"""
PEOPLE = "people.parquet"
VAULT = "demo.vault"
NAME = "veterans"
MARK = ".made-by-relaxdp-demo"


def demo(out: Annotated[Path, typer.Option(help="Folder for the demo's files.")] = Path("relaxdp-demo")) -> None:
    """Release a real column at four levels, survive a crash, and reject an overspend.

    Example: relaxdp demo --out relaxdp-demo
    """
    run_demo(out)


def run_demo(folder: Path) -> None:
    """Run the demo in `folder` and print what happens. Nothing is left of one that fails."""
    if folder.exists() and not (folder / MARK).exists():
        raise TableFileError(
            "The folder {folder!r} exists and was not made by the demo, so it is not replaced.",
            hint="Name another folder, such as --out relaxdp-demo-2.",
            folder=str(folder),
        )
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run_steps(folder, _make_true_answers())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run_steps(folder: Path, true_answers: Any) -> None:
    console = Console()
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    table = pa.table({"person": np.arange(len(true_answers)), "veteran": pa.array(np.array(VALUES)[true_answers])})
    pa_parquet.write_table(table, folder / PEOPLE)
    vault = Vault.create(folder / VAULT, budget=2)
    share = float(np.mean(true_answers))
    console.print(
        f"[bold]Real census answers: {len(true_answers):,} American men. Did they serve in a war?[/bold]\n"
        f"The true share, which only the data holder knows: {share:.2%} yes.\n"
    )
    releases = _release_at_all_levels(console, folder, vault)
    relaxed, split, fresh = _estimate_at_equal_budget(true_answers, releases)
    _print_estimates(console, share, relaxed, split, fresh)
    is_drawn = _draw_figure(folder / "demo.png", share, relaxed, split)
    where = str(folder / "demo.png") if is_drawn else "pip install 'relaxdp[plot]', and run the demo again"
    console.print(f"A picture of this: {where}\n", markup=False)
    _kill_and_repeat_release(console, folder)
    console.print("A release at epsilon 3, beyond the budget of 2, is rejected:")
    try:
        vault.relax(NAME, 3)
    except BudgetExceededError as problem:
        console.print(f"  {problem.message}", markup=False)
    else:
        console.print("  NOT REJECTED")


def _make_true_answers() -> Any:
    """Return the true answers of the column, 1 for yes, in a mixed order, which makes no difference to reports."""
    return np.random.default_rng(1950).permutation(np.repeat(np.arange(len(VALUES)), COUNTS))


def _release_at_all_levels(console: Console, folder: Path, vault: Vault) -> list[Path]:
    """Release the column at the first level, and relax it to the others: the table is not needed for that."""
    files = [folder / f"veteran-{level}.parquet" for level in LEVELS]
    for level, file in zip(LEVELS, files, strict=True):
        release = (
            vault.relax(NAME, level, output=file)
            if vault.spent
            else vault.release(
                folder / PEOPLE, {"veteran": VALUES}, id="person", epsilon=level, name=NAME, output=file,
                planned_epsilon=2,
            )
        )  # fmt: skip
        cost, spent, budget = map(format_epsilon, (release.cost, release.spent, release.budget))
        console.print(f"epsilon {level:<3}: cost {cost:<3}, privacy loss so far {spent:<3} of a budget of {budget}")
    return files


def _estimate_at_equal_budget(true_answers: Any, releases: list[Path]) -> tuple[list[Any], list[Any], Any]:
    """Return estimates at equal budget: relaxed, split among fresh responses, and one fresh response at the end."""
    answers, ids, key = Categorical(VALUES), np.arange(len(true_answers)), Key.generate()
    relaxed = [
        answers.estimate(pa_parquet.read_table(file)["veteran"], epsilon=level)
        for file, level in zip(releases, LEVELS, strict=True)
    ]

    def respond(release: str, epsilon: Any) -> Any:
        column = pa.DictionaryArray.from_arrays(pa.array(true_answers), pa.array(VALUES))
        return answers.release(column, ids, key=key, epsilon=epsilon, name=release, column="veteran")

    split, counts = [], Counts(answers)
    for number, part in enumerate(split_budget(list(map(as_epsilon, LEVELS)))):
        counts.add(respond(f"split {number}", part), epsilon=part)
        split.append(counts.estimate("precision"))
    return relaxed, split, answers.estimate(respond("fresh", LEVELS[-1]), epsilon=LEVELS[-1])


def _print_estimates(console: Console, true_share: float, relaxed: list[Any], split: list[Any], fresh: Any) -> None:
    table = Table(title="\nShare of yes, with 95 % intervals, at equal budget")
    for heading in ("privacy loss", "truth", "relaxed", "budget split", "one fresh answer"):
        table.add_column(heading, justify="right")
    for level, ours, theirs in zip(LEVELS, relaxed, split, strict=True):
        last = _format_share(fresh) if level == LEVELS[-1] else ""
        table.add_row(level, f"{true_share:.2%}", _format_share(ours), _format_share(theirs), last)
    console.print(table)
    ratio = (split[-1].std_error[1] / relaxed[-1].std_error[1]) ** 2
    console.print(
        f"Relaxed, the last answer is as good as a fresh one at epsilon {LEVELS[-1]}.\n"
        f"With the budget split among four answers, its variance is {ratio:.1f} times larger.\n"
    )


def _format_share(estimate: Any) -> str:
    low, high = estimate.interval()
    return f"{estimate.value[1]:.2%} ± {(high[1] - low[1]) / 2:.2%}"


def _draw_figure(path: Path, true_share: float, relaxed: list[Any], split: list[Any]) -> bool:
    """Draw the estimates, if there is something to draw with."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
        from matplotlib.ticker import PercentFormatter  # noqa: PLC0415
    except ImportError:
        return False
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.axhline(true_share, color="#444444", linewidth=1, linestyle="--", label="true share")
    rows = [("relaxed", relaxed, "#2563a8", "o", -0.06), ("budget split", split, "#c2571a", "s", 0.06)]
    for name, results, colour, marker, shift in rows:
        shares = np.array([result.value[1] for result in results])
        low, high = np.array([[end[1] for end in result.interval()] for result in results]).T
        places, label = np.arange(len(results)) + shift, f"{name}, 95 % confidence interval"
        axes.errorbar(places, shares, (shares - low, high - shares), fmt=marker, color=colour, label=label)
    axes.set_xticks(range(len(LEVELS)), LEVELS)
    axes.set(xlabel="privacy loss so far (epsilon)", ylabel="estimated share of yes")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    return True


def _kill_and_repeat_release(console: Console, folder: Path) -> None:
    """Kill a release while it writes, run it again, and compare with the file from before."""
    words = [
        sys.executable, "-m", "relaxdp", "release", str(folder / PEOPLE), str(folder / "killed.parquet"),
        "--column", f"veteran={','.join(VALUES)}", "--id", "person", "--epsilon", "2", "--name", NAME,
        "--vault", str(folder / VAULT),
    ]  # fmt: skip
    for _ in range(20):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        while process.poll() is None and not list(folder.glob(".killed.parquet.*")):
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        if not (folder / "killed.parquet").exists():
            break
        (folder / "killed.parquet").unlink()  # it was faster than the signal
    left = len(list(folder.glob(".killed.parquet.*")))
    console.print(f"A release was killed while it wrote ({left} unfinished file, no output), and run again:")
    subprocess.run(words, check=True, capture_output=True)  # noqa: S603
    same = pa_parquet.read_table(folder / "killed.parquet").equals(pa_parquet.read_table(folder / "veteran-2.parquet"))
    console.print(f"  {'identical' if same else 'DIFFERENT'} reports, and it cost nothing.\n")
