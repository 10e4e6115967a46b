"""`relaxdp relax`: release the rows of an earlier release at another level, without the table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relaxdp.cli.options import DryRun, JsonOption, VaultOption
from relaxdp.cli.release import show_release
from relaxdp.cli.render import progress_bar
from relaxdp.cli.vault import locate_vault
from relaxdp.tables.vault import Vault


def relax(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the release.")],
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="Released table (.parquet or .csv); it must not exist.")
    ],
    epsilon: Annotated[str, typer.Option(help="The new level of each column, like 0.5.")],
    column: Annotated[
        list[str] | None, typer.Option(help="Column to relax; repeat it for more  [default: all of the release]")
    ] = None,
    dry_run: DryRun = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Relax an earlier release to a larger epsilon. The table is not needed any more.

    A larger level costs the difference, for each column. An equal or lower one is free.
    """
    opened = Vault(locate_vault(vault))
    with progress_bar("relaxing", "rows") as progress:
        done = opened.relax_with(name, epsilon, columns=column, output=output, dry_run=dry_run, progress=progress)
    show_release(done, as_json)
