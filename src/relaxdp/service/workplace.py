"""A place for files on their way, into the database or out of it: private, and gone in the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from relaxdp.errors import StorageUnavailableError, TableFileError
from relaxdp.table.temporary import passing_folder


@contextmanager
def workplace() -> Iterator[Path]:
    """Give a folder that nobody else can read.

    What is in it may be reports, so it must not stay: the folder of a process that was killed is removed by the next
    one that needs a place, which a lock tells from one at work. Everybody may write beside it, and can stop nobody.
    """
    with ExitStack() as stack:
        try:
            place = Path(tempfile.gettempdir()) / f"relaxdp-files-{os.geteuid()}"
            folder = stack.enter_context(passing_folder(place))
        except (TableFileError, FileNotFoundError):
            raise StorageUnavailableError(
                "there is no place for files on their way: the folder for temporary files cannot be written to. What "
                "was not acknowledged may be sent again."
            ) from None
        yield folder
