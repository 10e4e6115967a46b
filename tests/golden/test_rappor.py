"""Golden: RAPPOR with relaxation: parameters, candidate map, reports at growing levels, and decoded shares."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from tests.golden import data, driver, driver_rappor, recorded

SHAPE = {"bits": 32, "hashes": 2, "cohorts": 4}
PARAMETERS = "k,h,m,p,q,f\n32,2,4,0,1,0.25\n"
CANDIDATES = ["apple", "pear", "plum", "cherry", "quince", "medlar", "Mirabelle", "Johannisbeere", "naïve", "fig"]
CLIENTS = [f"client-{number:03d}" for number in range(500)]
WORDS = [CANDIDATES[[0, 0, 0, 0, 1, 1, 1, 2, 2, 7][number * number % 10]] for number in range(500)]
WHERE: dict[str, Any] = {"key": data.KEY, "name": "words", "column": "word"}


def draw(epsilon: str) -> tuple[list[int], list[str]]:
    """Return the cohorts and reports of all clients."""
    return driver_rappor.draw_reports(WORDS, CLIENTS, epsilon, SHAPE, **WHERE)


def write_clients(folder: Path) -> Path:
    """Write clients and words in an order that is not that of the ids."""
    order = [137 * place % 500 for place in range(500)]
    table = {"client": [CLIENTS[place] for place in order], "word": [WORDS[place] for place in order]}
    return driver.write_table(table, folder / "clients.csv")


def test_choosing_parameters(tmp_path: Path) -> None:
    """Parameters for a level tell the smallest share that is found; for a share they tell the level."""
    asked: dict[str, Any] = {"devices": 100_000, "candidates": 300}
    found = {
        "for a level": driver_rappor.choose_parameters(**asked, epsilon="4.4"),
        "for a share": driver_rappor.choose_parameters(**asked, share=0.01),
    }
    recorded.check("rappor-parameters", found)
    for name, goal in (("for a level", {"epsilon": "4.4"}), ("for a share", {"share": 0.01})):
        by_command = driver_rappor.choose_parameters_by_command(tmp_path, **asked, **goal)
        for plan, other in zip(found[name], by_command, strict=True):
            assert {key: str(value) for key, value in plan.items()} == {key: str(value) for key, value in other.items()}


def test_the_map_is_that_of_the_hash() -> None:
    """A word sets the bits of the first bytes of MD5 of cohort and word, as in Google's client."""
    for word in CANDIDATES:
        expected = []
        for cohort in range(4):
            digest = hashlib.md5(cohort.to_bytes(4, "big") + word.encode(), usedforsecurity=False).digest()
            expected.append([byte % 32 for byte in digest[:2]])
        assert driver_rappor.map_bits(word, SHAPE) == expected


def test_levels_of_one_client() -> None:
    """A client has one cohort and the same report at a level, in any order; at a large epsilon it is the filter."""
    levels = ["1", "4", "2", "150", "4"]
    for place in (0, 17, 499):
        cohort, reports = driver_rappor.read_device(WORDS[place], levels, SHAPE, id=CLIENTS[place], **WHERE)
        for epsilon, report in zip(levels, reports, strict=True):
            cohorts, column = draw(epsilon)
            assert (cohort, report) == (cohorts[place], column[place])
        bits = driver_rappor.map_bits(WORDS[place], SHAPE)[cohort]
        assert reports[3] == "".join("1" if bit in bits else "0" for bit in reversed(range(32)))


def test_from_words_to_reports_to_words(tmp_path: Path) -> None:
    """Encode, relax by a level and along schedules, and decode: the reports cost the last level together."""
    holder = driver_rappor.RapporHolder(tmp_path / "holder", key=data.KEY, budget="12", parameters=PARAMETERS)
    source = write_clients(tmp_path)
    candidates = tmp_path / "candidates.txt"
    candidates.write_text("\n".join(CANDIDATES) + "\n", "utf-8")
    rows = holder.write_map(candidates)
    for word, *fields in rows:
        by_cohort = driver_rappor.map_bits(word, SHAPE)
        assert fields == [str(32 * cohort + bit + 1) for cohort, bits in enumerate(by_cohort) for bit in bits]
    where: dict[str, Any] = {"id": "client", "column": "word"}
    made = [holder.encode(source, "2", "r0.csv", name="words", **where)]
    linear = ["--schedule", "linear:2,6,3"]
    sampling = ["--schedule", "noisy-sampling:2,1,6"]
    for step, options in enumerate((linear, linear, sampling, ["--epsilon", "10"])):
        made.append(holder.relax("words", f"r{step + 1}.csv", *options))
    for each in made:
        cohorts, reports = draw(each["epsilon"])
        assert (each["ids"], each["cohorts"], each["reports"]) == (CLIENTS, cohorts, reports)
    found: dict[str, Any] = {
        "steps": [{name: each[name] for name in ("epsilon", "cost", "spent")} for each in made],
        "cohorts": data.spell(made[0]["cohorts"], range(4)),
        "reports": {each["epsilon"]: bytes_of(each["reports"]) for each in (made[0], made[-1])},
        "map": rows,
        "decoded": holder.decode(["r4.csv"]),
        "all levels": holder.decode([f"r{step}.csv" for step in range(5)]),
        "false discoveries": holder.decode(
            ["r4.csv"], "--correction", "benjamini-hochberg", "--rate", "0.2", "--simultaneous"
        ),
        "at 6": holder.decode(["r2.csv"], "--about", "population", "--confidence-level", "0.9"),
    }
    recorded.check("rappor", found)
    # Every client counts once, at its highest level.
    assert found["all levels"] == found["decoded"]
    in_python = driver_rappor.decode_reports([("10", *draw("10"))], CANDIDATES, SHAPE)
    assert in_python == found["decoded"]
    shares = dict(zip(in_python["word"], zip(in_python["low"], in_python["high"], strict=True), strict=True))
    for word in CANDIDATES:
        low, high = shares[word]
        assert low - 0.02 <= WORDS.count(word) / 500 <= high + 0.02
    detected = {word for word, is_found in zip(in_python["word"], in_python["found"], strict=True) if is_found}
    assert {"apple", "pear"} <= detected <= {"apple", "pear", "plum", "Johannisbeere"}


def test_clients_at_different_levels() -> None:
    """Clients stop at their own level; each counts once, and the decoded shares take all of them."""
    high, low = draw("10"), draw("4")
    split = 200
    both = [
        ("4", low[0][:split], low[1][:split]),
        ("10", high[0][split:], high[1][split:]),
    ]
    found = driver_rappor.decode_reports(both, CANDIDATES, SHAPE)
    assert found["devices"] == 500
    recorded.check("rappor-levels", found)


def test_one_bit_is_a_boolean(tmp_path: Path) -> None:
    """One bit without hashes is a yes-no question: it costs its epsilon once and is decoded without candidates."""
    holder = driver_rappor.RapporHolder(
        tmp_path / "holder", key=data.KEY, budget="3", parameters="k,h,m,p,q,f\n1,1,1,0,1,0.5\n"
    )
    rows = {"client": CLIENTS, "word": ["true" if place % 10 < 3 else "false" for place in range(500)]}
    source = driver.write_table(rows, tmp_path / "answers.csv")
    made = holder.encode(source, "1.5", "out.csv", name="words", id="client", column="word")
    decoded = holder.decode_boolean("out.csv")
    found = {"cost": made["cost"], "reports": "".join(made["reports"]), "decoded": decoded}
    assert decoded["low"][0] <= 0.3 <= decoded["high"][0]
    recorded.check("rappor-boolean", found)


def bytes_of(reports: list[str]) -> str:
    """Return reports of 32 bits as hexadecimal digits."""
    return "".join(f"{int(report, 2):08x}" for report in reports)
