"""A place for files on their way, into the database or out of it: private, and gone in the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from relaxdp.errors import StorageUnavailableError, TableFileError
from relaxdp.table.temporary import temporary_folder


@contextmanager
def workplace() -> Iterator[Path]:
    """Give a folder that nobody else can read, see `temporary_folder`; without one the service cannot work."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder())
        except TableFileError:
            raise StorageUnavailableError(
                "there is no place for files on their way: the folder for temporary files cannot be written to. What "
                "was not acknowledged may be sent again."
            ) from None
        yield folder
