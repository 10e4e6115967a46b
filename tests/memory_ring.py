"""A keyring for tests: it forgets at the end, and can be told to refuse, or to keep nothing."""

from __future__ import annotations

import keyring.backend
import keyring.errors


class MemoryRing(keyring.backend.KeyringBackend):
    """A keyring that forgets, and that can be told to refuse or to keep nothing."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = self.keeps_nothing = False

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise keyring.errors.KeyringLocked(f"locked, and here is what you gave me: {password}")
        if not self.keeps_nothing:
            self.kept[service, username] = password

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise keyring.errors.KeyringLocked("locked")
        return self.kept.get((service, username))

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]
