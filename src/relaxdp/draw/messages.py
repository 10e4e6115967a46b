"""The messages of many objects up to their last block: ids, and what comes after them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relaxdp.draw.columns import Groups, Ids
from relaxdp.draw.stream import Words


@dataclass(frozen=True, slots=True, repr=False)
class Messages:
    """The ids of some objects and, after them, blocks of (blocks, objects, 2) words. Its `repr` shows none of them.

    Blocks without ids are those of one object, whose bytes are known already.
    """

    ids: Ids | None
    more: Words | None = None

    def __len__(self) -> int:
        if self.ids is not None:
            return len(self.ids)
        return 0 if self.more is None else self.more.shape[1]

    def groups(self) -> Groups:
        """Return all blocks, laid out: objects with equally many go together."""
        if self.ids is None:
            if self.more is not None:
                yield slice(None), self.more
            return
        for chosen, blocks in self.ids.groups():
            # Contiguous, because AES takes whole rows.
            more = None if self.more is None else np.ascontiguousarray(self.more[:, chosen])
            yield chosen, blocks if more is None else np.concatenate([blocks, more])
