"""Ways out, in the words of the command line: which option helps where something was refused."""

from __future__ import annotations

ON_COMMAND_LINE = {
    "accept": "--yes releases it all the same.",
    "again": "--again re-issues a lower level, which costs nothing.",
    "better_encoding": "--encoding {better_encoding} would tell more.",
    "better_plan": (
        "It was encoded for epsilon {chosen_for}, the last planned: --planned-epsilon {epsilon} takes "
        "{better_encoding}, which tells more now."
    ),
    "booleans": "--map FILE with the lines true,yes and false,no gives them other names.",
    "budget": "--budget 2 gives one.",
    "charge_missing": "Before anything else is released, charge what is missing: docs/ledger.md says how.",
    "chosen_rows": (
        "--by makes groups of a kept column. If rows were chosen without a look at reports, say --description {name}."
    ),
    "clip": "--clip puts numbers into it.",
    "column": "--column picks it.",
    "columns_apart": "--column picks those of one release.",
    "cross": "--cross names the second one.",
    "date": "--date says it: {dates}.",
    "dates": "--map FILE with lines like 2026-01-31,winter gives them other names.",
    "description": "--description FILE says it.",
    "enough_epsilon": (
        "--epsilon {enough_epsilon} would do; if that is planned, --planned-epsilon {enough_epsilon} says so."
    ),
    "engine": "--engine spark chooses it.",
    "force": "--force opens a new path, charged to everyone in addition to the {largest} of the old one.",
    "force_changed": "--force opens a new path, charged to everyone.",
    "force_or_date": (
        "A new path for the table as it is now, by --force or as a dated release (`relaxdp budget series`, --date), "
        "is charged to everyone in addition to the {largest} of the old one."
    ),
    "from_reports": "`relaxdp relax --from-reports` goes on from its last file.",
    "id": "If it is not the column of the ids, --id names that one.",
    "keygen": "`relaxdp keygen {path!r}` makes one; what was released before needs its own key.",
    "last_epsilon": "--old-epsilon says it.",
    "ledger": "Go on with it: --ledger names it.",
    "missing_number": "--missing makes it a report of its own; --bins with --nulls NAME a class of its own.",
    "missing_value": "--nulls NAME makes it a value of its own.",
    "more_rows": "More rows, or fewer values, would tell more.",
    "new_ledger": "If there must be a new one, say why: --new-ledger REASON.",
    "no_snapshot": "--no-snapshot releases it without one.",
    "numbers": "--range and --bins are for numbers, and --map FILE says what each value becomes.",
    "older_ledger": (
        "Restore the newer one; if it is lost, charge what is missing (`relaxdp budget check FILES` names it), the "
        "first time with --new-ledger REASON."
    ),
    "planned_epsilon": "--planned-epsilon says it.",
    "plan_boolean": "`relaxdp plan --values 2` plans it.",
    "raise_budget": (
        "If so much may be known of them, `relaxdp budget raise {enough} --reason WHY` with the same --key or --ledger "
        "raises it."
    ),
    "relax_dated": (
        "`relaxdp relax {release!r} OUT --date {date}` goes on with the table as of {as_of}, for the difference."
    ),
    "relax_old": "`relaxdp relax {release!r} OUT` goes on with the table as of {as_of}, for the difference.",
    "release": "--release says it.",
    "same_range": "Give the same --range, with --clip and --missing as before.",
    "same_shape": "Give the same --params.",
    "same_values": "Give the same --values in the same order, with --nulls as before.",
    "say_encoding": "--encoding says it, like local-hash:buckets=4; `relaxdp estimate --json` tells what a file has.",
    "say_values": "--values, --values-file, --range, --bins and --map say it.",
    "series": "`relaxdp budget series {release!r} --dates {date} --each EPSILON --reason WHY` declares it.",
    "series_more": "`relaxdp budget series {release!r} --dates {date} --each {epsilon} --reason WHY` raises that.",
    "separator": "--separator says so, like --separator ';' for semicolons.",
    "say_ledger": "--ledger names one.",
    "schedule": "Give --objects, and not --epsilon.",
    "snapshot_again": "Remove it, and release the table once more: that makes it again.",
    "snapshots": "If it lies in another folder, --snapshots names that; else release the table once more.",
    "spark_folder": "Only --engine spark writes a folder.",
    "spark_log": "Spark's log: {log}",
    "table": "`relaxdp release` of its table relaxes it.",
    "two_of_three": "They are --half-width, --objects and --epsilon.",
    "which_ledger": "Say --ledger {other} to go on with its accounts, or --ledger {file} to begin new ones.",
    "which_release": (
        "Say --release {other!r} to relax that one, or --release NAME for a new path, whose cost is added."
    ),
    "which_releases": (
        "Say --release with one of these names to relax it, or with another for a new path, whose cost is added."
    ),
    "without_force": "Without --force the path goes on.",
}
