"""What is published, as a page for people: made from the published words alone, without a script."""

from __future__ import annotations

import math
from html import escape
from string import Template

from relaxdp.collector.estimate_wire import Row
from relaxdp.collector.publishing import Publication

MOST_ROWS = 100

_PAGE = Template("""<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Published · relaxdp</title>
    <link rel="icon" href="../static/kit/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="../static/kit/style.css">
  </head>
  <body>
    <main class="narrow">
      <h1 dir="auto">$question</h1>
      <p>$devices devices answered with reports that are blurred by chance. This was published once, after the last of
        them, and never changes.</p>
      <section class="card" aria-labelledby="result">
        <h2 id="result">The result</h2>
        <table>
          <thead><tr><th scope="col">Value</th><th scope="col" class="number">Estimate</th>
            <th scope="col" class="number">$level&nbsp;% interval</th></tr></thead>
          <tbody>$rows</tbody>
        </table>
        <p class="small">$shown The intervals hold for all values at once, and are about these devices.</p>
      </section>
      <section class="card" aria-labelledby="cost">
        <h2 id="cost">What it costs those who answered</h2>
        <p>Towards you, who read this: epsilon <strong>$public</strong> at most, with a delta of $delta. Whatever you
          know otherwise, this page and its file raise the odds of a guess about one answer at most $times times;
          roughly, that this fails has a chance of delta.</p>
        <p>Towards the collector, which receives reports with ids: epsilon $reports at most.</p>
        <p>The smaller number is true only if:</p>
        <ul>$assumes</ul>
      </section>
      <section class="card" aria-labelledby="file">
        <h2 id="file">What was published</h2>
        <p>$groups; levels with fewer than $least devices are left out. Who withdraws later is not taken out: what
          was read cannot be unread.</p>
        <p><a href="../v1/campaigns/$campaign/published">The same as a file (JSON)</a> has the counts of the reports
          too, and neither ids nor times.</p>
      </section>
    </main>
  </body>
</html>
""")


def page_of(told: Publication) -> bytes:
    """Return the page, the largest values where there are many."""
    rows = told.rows
    if len(rows) > MOST_ROWS:
        rows = sorted(rows, key=lambda row: -row.estimate)[:MOST_ROWS]
    levels = [f"{group.devices:,} devices at epsilon {group.level.epsilon}" for group in told.groups]
    words = {
        "question": told.question,
        "campaign": told.campaign,
        "devices": f"{told.devices:,}",
        "level": f"{100 * told.confidence_level:g}",
        "shown": f"The largest {len(rows):,} of {len(told.rows):,} values." if len(rows) < len(told.rows) else "",
        "public": told.public_epsilon,
        "delta": f"{told.delta:g}",
        "times": _times(told.public_epsilon),
        "reports": told.report_epsilon,
        "groups": " and ".join(levels),
        "least": f"{told.least:,}",
    }
    lists = {
        "rows": "".join(map(_row, rows)),
        "assumes": "".join(f"<li>{escape(each)}</li>" for each in told.assumes),
    }
    return _PAGE.substitute({name: escape(word) for name, word in words.items()} | lists).encode()


def _times(epsilon: str) -> str:
    """Return e to the epsilon, rounded up."""
    return f"{math.ceil(math.exp(float(epsilon)) * 1000 + 1e-9) / 1000:g}"


def _row(row: Row) -> str:
    name = escape(str(row.value))
    number, interval = f"{row.estimate:.4f}", f"{row.low:.4f} to {row.high:.4f}"
    return (
        f'<tr><th scope="row" class="wrapped" dir="auto">{name}</th><td class="number">{number}</td>'
        f'<td class="number">{interval}</td></tr>'
    )
