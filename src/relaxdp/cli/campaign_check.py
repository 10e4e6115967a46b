"""The test for fabricated reports of a campaign, in words and tables that state what it cannot detect."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from relaxdp.cli.campaign_tables import numbers, text

_KINDS = {"repeated": "sent again too often", "changed": "changed too often", "older": "sent too often at first"}


def verdict(found: dict[str, Any] | None) -> str:
    """Return what was found, in a few lines."""
    if found is None:
        return "The campaign has one level. No device has two reports to compare, so fabricated ones cannot be noticed."
    tested, untested = int(found["tested"]), int(found["untested"])
    if not tested:
        return f"None of {untested:,} devices has two reports yet, so nothing can be tested."
    rate = f"{100 * float(found['false_alarms']):g} %"
    if bool(found["alarm"]):
        result = (
            f"Fabricated reports were noticed: at least {_devices(found['made_up'])} do not report as honest ones do."
        )
    else:
        unnoticed = int(found["unnoticed"])
        result = (
            f"No fabricated reports were noticed. About {unnoticed:,} of {tested:,} devices "
            f"({100 * unnoticed / tested:.1f} %) can repeat every report without being noticed.\n"
            f"{_most(found['made_up'])}"
        )
    ever, once = _chance(found["p_value_ever"]), _chance(found["p_value"])
    return (
        f"{result}\n{tested:,} of {tested + untested:,} devices have two reports or more and could be tested.\n"
        f"The chance of this with honest devices is at most {ever}, however often you look.\n"
        f"At most {rate} of honest campaigns ever raise an alarm.\n"
        f"At a single planned look the test over all values has the p-value {once}."
    )


def pushed_table(found: dict[str, Any] | None) -> Table | None:
    """Return which values are pushed; None if none is."""
    if found is None or not found["pushed"]:
        return None
    table = Table(title="pushed values", caption="intervals of all values at once")
    for name in ("value", "how"):
        table.add_column(name)
    table.add_column("devices, at least", justify="right")
    for each in found["pushed"]:
        table.add_row(text(each["value"]), _KINDS[each["kind"]], _devices(each["devices"], short=True))
    return table


def shares_table(found: dict[str, Any] | None, confidence: float) -> Table | None:
    """Return the estimate from the tested devices, with and without fabricated reports."""
    if found is None or not found["shares"]:
        return None
    table = Table(
        title=f"from the {int(found['tested']):,} tested devices",
        caption="without fabricated reports: intervals of all values at once" if found["without"] else None,
    )
    table.add_column("value")
    for name in ("estimate", f"{100 * confidence:g} % interval"):
        table.add_column(name, justify="right")
    cleaned = {str(row["value"]): numbers(row) for row in found["without"] or []}
    if cleaned:
        for name in ("without fabricated", "interval"):
            table.add_column(name, justify="right")
    for row in found["shares"]:
        table.add_row(text(row["value"]), *numbers(row), *cleaned.get(str(row["value"]), []))
    return table


def limits(found: dict[str, Any] | None) -> str:
    """Return what the test cannot detect, which no one must miss because a sentence is long."""
    return "" if found is None else "\n".join(f"- {text(each, 1_000)}" for each in found["limits"])


def _devices(found: dict[str, Any], *, short: bool = False) -> str:
    numbers = f"{float(found['estimate']):,.0f}"
    between = f"{float(found['low']):,.0f} to {float(found['high']):,.0f}"
    return f"{numbers} ({between})" if short else f"{numbers} devices ({between})"


def _most(found: dict[str, Any]) -> str:
    between = f"{float(found['low']):,.0f} to {float(found['high']):,.0f}"
    return f"The number of devices that repeat every report is {between} (95 % interval)."


def _chance(chance: Any) -> str:
    return "less than 1e-300" if float(chance) == 0 else f"{float(chance):.2g}"
