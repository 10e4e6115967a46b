"""The part of the adapter for RAPPOR, by commands and in Python."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.golden.driver_commands import create_vault, run

import relaxdp as rx
from relaxdp.mechanisms.bloom import Bloom, BloomShape, compute_bit_support, compute_bit_threshold, release_bloom
from relaxdp.mechanisms.report_arrays import format_bits
from relaxdp.rappor.candidate_map import CandidateMap
from relaxdp.rappor.decoding import decode_words
from relaxdp.rappor.parameters import plan_parameters, plan_parameters_for_share
from relaxdp.rappor.reports import RapporCounts, RapporDevice
from relaxdp.sampling.keyed_stream import PathId

Shape = Mapping[str, int]


class RapporHolder:
    """A table of clients and words, and the commands that make its reports and decode them."""

    def __init__(self, folder: Path, *, key: bytes, budget: str, parameters: str) -> None:
        folder.mkdir(parents=True)
        self._folder, self._vault, self._parameters = folder, folder / "study.vault", folder / "params.csv"
        create_vault(self._vault, key=key, budget=budget, state=folder / "state")
        columns = [column for column in zip(*csv.reader(parameters.splitlines()), strict=True) if column[0] in "khmf"]
        self._parameters.write_text("\n".join(map(",".join, zip(*columns, strict=True))) + "\n", "utf-8")

    def encode(self, source: Path, epsilon: str, output: str, *, id: str, column: str, name: str) -> dict[str, Any]:
        """Make the reports of a table."""
        words = ["encode", str(source), self._file(output), "--epsilon", epsilon, "--name", name]
        return self._released(output, *words, "--id", id, "--column", column, "--params", str(self._parameters))

    def relax(self, name: str, output: str, *options: str) -> dict[str, Any]:
        """Take the reports of a release to a higher level."""
        return self._released(output, "relax", name, self._file(output), *options)

    def write_map(self, candidates: Path) -> list[list[str]]:
        """Return the rows of the map of candidates, which is written to a file."""
        text = run("rappor", "map", str(candidates), "--params", str(self._parameters), state=self._folder / "state")
        (self._folder / "map.csv").write_text(text, "utf-8")
        return list(csv.reader(text.splitlines()))

    def decode(self, outputs: Sequence[str], *options: str) -> dict[str, Any]:
        """Return the words of the map with their shares and intervals."""
        return self._decode(outputs, "--map", self._file("map.csv"), *options)

    def decode_boolean(self, output: str) -> dict[str, Any]:
        """Return the share of yes with its interval."""
        return self._decode([output])

    def _decode(self, outputs: Sequence[str], *options: str) -> dict[str, Any]:
        words = ["rappor", "decode", *map(self._file, outputs), "--params", str(self._parameters), "--json", *options]
        found = json.loads(run(*words, state=self._folder / "state"))
        names = ("word", "share", "estimate", "std_error", "low", "high", "found")
        return {"devices": found["devices"]} | {name: [word[name] for word in found["words"]] for name in names}

    def _released(self, output: str, *words: str) -> dict[str, Any]:
        text = run("rappor", *words, "--vault", str(self._vault), "--json", state=self._folder / "state")
        made = json.loads(text)
        with Path(self._file(output)).open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
        ids, cohorts, reports = (list(column) for column in zip(*rows, strict=True))
        (column,) = made["columns"].values()
        return {
            "epsilon": made["epsilon"], "cost": column["cost"], "spent": made["spent"], "ids": ids,
            "cohorts": [int(cohort) for cohort in cohorts], "reports": reports,
        }  # fmt: skip

    def _file(self, name: str) -> str:
        return str(self._folder / name)


def choose_parameters(**asked: Any) -> list[dict[str, Any]]:
    """Return parameters, best first, for a number of devices and candidates at a level, or for a share to be found."""
    share = asked.pop("share", None)
    for name in ("devices", "candidates"):
        asked[f"n_{name}"] = asked.pop(name)
    plans = plan_parameters(**asked) if share is None else plan_parameters_for_share(share, **asked)
    return [
        {
            "bits": plan.shape.bits, "hashes": plan.shape.hashes, "cohorts": plan.shape.cohorts,
            "epsilon": plan.epsilon, "f": plan.noise, "smallest_share": plan.smallest_share,
        }
        for plan in plans
    ]  # fmt: skip


def choose_parameters_by_command(state: Path, **asked: Any) -> list[dict[str, Any]]:
    """Return the same by the command."""
    words = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
    plans = json.loads(run("rappor", "params", *words, "--json", state=state))["plans"]
    return [
        {
            "bits": plan["k"], "hashes": plan["h"], "cohorts": plan["cohorts"], "epsilon": plan["epsilon"],
            "f": plan["f"], "smallest_share": plan["smallest_share"],
        }
        for plan in plans
    ]  # fmt: skip


def map_bits(word: str, shape: Shape) -> list[list[int]]:
    """Return the bits that a word sets in each cohort."""
    return [list(BloomShape(**shape).compute_bits(word, cohort)) for cohort in range(shape["cohorts"])]


def draw_reports(
    words: Sequence[str], ids: Sequence[str], epsilon: str, shape: Shape, *, key: bytes, name: str, column: str
) -> tuple[list[int], list[str]]:
    """Return the cohorts and reports of many individuals, as bits with the highest first."""
    filters = BloomShape(**shape)
    level = Bloom(filters).level(epsilon)
    found = release_bloom(
        filters, words, ids, key=rx.Key.from_bytes(key), level=level, path=PathId(name, column)
    )  # fmt: skip
    return found.cohorts.tolist(), format_bits(found.packed, filters.bits)


def read_device(
    word: str, epsilons: Sequence[str], shape: Shape, *, key: bytes, id: str, name: str, column: str
) -> tuple[int, list[str]]:
    """Return the cohort of one individual, and the reports at these levels."""
    device = RapporDevice(
        BloomShape(**shape), word, key=rx.Key.from_bytes(key), id=id, name=name, column=column
    )  # fmt: skip
    return device.cohort, [device.get_report(epsilon).bits for epsilon in epsilons]


def decode_reports(
    reports: Sequence[tuple[str, Sequence[int], Sequence[str]]],
    candidates: Sequence[str],
    shape: Shape,
    *,
    about: Any = "sample",
) -> dict[str, Any]:
    """Return the words with their shares and intervals, from levels, cohorts and reports."""
    filters = BloomShape(**shape)
    counts = RapporCounts(filters)
    for epsilon, cohorts, bits in reports:
        support = compute_bit_support(compute_bit_threshold(filters, epsilon))
        arrays = np.array(cohorts), np.array([[int(bit) for bit in reversed(each)] for each in bits], np.uint8)
        counts.add_reports(*arrays, support)
    found = decode_words(counts, CandidateMap(list(candidates), filters))
    low, high = found.interval(about=about)
    numbers = {"share": found.consistent(), "estimate": found.value, "std_error": found.compute_std_error(about)}
    columns = numbers | {"low": low, "high": high, "found": found.find_detected_words()}
    return {"devices": found.n_devices, "word": list(found.labels)} | {
        name: column.tolist() for name, column in columns.items()
    }
