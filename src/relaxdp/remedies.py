"""Ways out, in the words of the library: which argument helps where something was refused."""

from __future__ import annotations

IN_PYTHON = {
    "accept": "accept=True releases it all the same.",
    "again": "again=True re-issues a lower level, which costs nothing.",
    "better_encoding": "{better_encoding} would tell more: leave its encoding open.",
    "better_plan": (
        "It was encoded for epsilon {chosen_for}, the last planned: planned_epsilon={epsilon} takes {better_encoding}, "
        "which tells more now."
    ),
    "booleans": "A column of 'yes' and 'no' that is made of them has values of these names.",
    "budget": "budget=2 gives one.",
    "columns_apart": "columns= picks those of one release.",
    "chosen_rows": (
        "by= makes groups of a kept column. If rows were chosen without a look at reports, say "
        "description=rx.description(frame)."
    ),
    "clip": "clip=True puts numbers into it.",
    "column": "column= picks it.",
    "columns": "Like {{'diagnosis': ['flu', 'covid', 'none'], 'age': rx.Numeric(0, 120)}}.",
    "cross": "cross= names the second one.",
    "date": "date= says it: {dates}.",
    "description": "description= says it; for one frame, so do mechanism= and epsilon=.",
    "force": "force=True opens a new path, charged to everyone in addition to the {largest} of the old one.",
    "force_changed": "force=True opens a new path, charged to everyone.",
    "force_or_date": (
        "A new path for the table as it is now, by force=True or as a dated release (Ledger.declare_series, "
        "date=), is charged to everyone in addition to the {largest} of the old one."
    ),
    "enough_epsilon": (
        "epsilon {enough_epsilon} would do; if that is planned, planned_epsilon={enough_epsilon} says so."
    ),
    "engine": "engine='spark' chooses it.",
    "from_reports": "rx.relax_reports goes on from its last file.",
    "id": "If it is not the column of the ids, id= names that one.",
    "ledger": "Go on with it: ledger= names it.",
    "missing_number": "missing=True makes it a report of its own, and bins can have a value for it.",
    "missing_value": "fillna (fill_null in polars) makes it a value, which must be declared.",
    "more_rows": "More rows, or fewer values, would tell more.",
    "new_ledger": "If there must be a new one, say why: new_ledger='...'.",
    "older_ledger": (
        "Restore the newer one; if it is lost, charge what is missing, the first time with new_ledger='...'."
    ),
    "planned_epsilon": "planned_epsilon= says it.",
    "no_snapshot": "snapshots=False releases it without one.",
    "numbers": "rx.Numeric is for numbers, and rx.Column makes bins of them.",
    "relax_dated": "rx.relax({release!r}, date={date!r}) goes on with the table as of {as_of}, for the difference.",
    "relax_old": "rx.relax({release!r}) goes on with the table as of {as_of}, for the difference.",
    "release": "release= says it.",
    "same_range": "Give the same mechanism, also in clip= and missing=.",
    "say_encoding": "rx.description tells it, and rx.Column takes it.",
    "say_ledger": "ledger= names one, and ledger=None says that nobody keeps account.",
    "say_values": "rx.Column says it.",
    "same_shape": "Give the same parameters.",
    "same_values": "Give the same mechanism, with its values in the same order.",
    "series": "Ledger.declare_series declares it.",
    "series_more": "Ledger.declare_series raises that.",
    "separator": "separator= says so, for a file.",
    "schedule": "Give objects=, and not epsilon=.",
    "snapshot_again": "Remove it, and release the table once more: that makes it again.",
    "snapshots": "If it lies in another folder, snapshots= names that; else release the table once more.",
    "table": "rx.release of its table relaxes it.",
    "to": "to= names it.",
    "two_of_three": "They are half_width=, objects= and epsilon=.",
    "which_ledger": "ledger={other!r} or ledger={file!r} says which.",
    "which_release": "release={other!r} relaxes that one, and another name opens a new path.",
    "which_releases": "release= with one of these names relaxes it, and another name opens a new path.",
    "without_force": "Without force=True the path goes on.",
}
