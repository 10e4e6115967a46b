"""Snapshots: what a release was drawn from, ids and truths as the stream takes them, sealed under the release's key.

So a release can be relaxed next year, when its table has changed or is gone. Only whoever has the key can read one, and
whoever erases the key erases all of them. The ledger records the digest of the file, so that another one in its place
is noticed. Nothing is compressed: lengths tell how many rows there are and how long their ids, and nothing of truths.

A file is one or more sealed parts, one after the other. A part is a header (a magic word, 32 random bytes, the key's
fingerprint) and chunks under AES-256-GCM with a key that HKDF derives for these random bytes. The header is
authenticated with every chunk; a chunk's nonce is its number and whether it is the last one, so that chunks can
neither be exchanged nor cut off. The first chunk says what was released, the others hold rows.
"""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as pa_ipc
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from relaxdp.draw.canonical import length_prefixed
from relaxdp.draw.key import Key
from relaxdp.encodings.protocol import Encoding, Truths, code_dtype
from relaxdp.errors import DescriptionError, RelaxdpError, SnapshotError
from relaxdp.publication.derive import ColumnNames
from relaxdp.publication.description import ColumnDescription, FileDescription

_MAGIC = b"relaxdp snapshot 1\n"
_SALT_BYTES, _FINGERPRINT_BYTES = 32, 8
_HEADER_BYTES = len(_MAGIC) + _SALT_BYTES + _FINGERPRINT_BYTES
_LENGTH = struct.Struct("<I")
_MORE, _LAST = 0, 1
_TAG_BYTES = 16
_MOST_BYTES = 1 << 30
"""So large a chunk is none of ours."""
_PIECE = 1 << 14


def rebuilt(described: ColumnDescription) -> Encoding | None:
    """Return the encoding that a description makes; None where this version does not know it."""
    try:
        return described.made_encoding()
    except DescriptionError:
        return None


@dataclass(frozen=True, slots=True)
class _Seal:
    """The key of one part, and the header that goes with every chunk."""

    cipher: AESGCM
    header: bytes

    @classmethod
    def new(cls, key: Key) -> _Seal:
        """Begin a part. Its key was never used before, so that the nonces may be counted."""
        return cls.of(key, _MAGIC + secrets.token_bytes(_SALT_BYTES) + bytes.fromhex(key.fingerprint))

    @classmethod
    def of(cls, key: Key, header: bytes) -> _Seal:
        """Return the seal that a header names."""
        salt = header[len(_MAGIC) : len(_MAGIC) + _SALT_BYTES]
        return cls(AESGCM(key.derive(length_prefixed(b"snapshot") + length_prefixed(salt))), header)

    def sealed(self, number: int, kind: int, content: Any) -> bytes:
        """Return a chunk with its length in front."""
        chunk = self.cipher.encrypt(_nonce(number, kind), content, self.header)
        return _LENGTH.pack(len(chunk)) + chunk

    def opened(self, number: int, kind: int, chunk: bytes) -> bytes | None:
        """Return what a chunk holds; None where it is not that chunk."""
        try:
            return self.cipher.decrypt(_nonce(number, kind), chunk, self.header)
        except InvalidTag:
            return None


def _nonce(number: int, kind: int) -> bytes:
    return struct.pack("<QI", number, kind)


def cannot_be_written(problem: OSError) -> SnapshotError:
    """Return the refusal to release what could not be kept."""
    return SnapshotError(
        "the snapshot cannot be written: {why}.", remedy="no_snapshot", why=problem.strerror or "the disk may be full"
    )


class PartWriter:
    """Writes one part. Rows are sealed by any thread, and written in their order by one."""

    def __init__(self, file: IO[bytes], key: Key, description: FileDescription, encodings: Sequence[Encoding]) -> None:
        self._file, self._digest, self._encodings = file, sha256(), encodings
        self._seal, self._chunks = _Seal.new(key), 1
        self._put(self._seal.header + self._seal.sealed(0, _MORE, description.dumps().encode()))

    def seal(self, number: int, ids: Any, truths: Sequence[Truths]) -> bytes:
        """Return the rows of a batch as a chunk; `number` counts the batches from 0."""
        batch = _as_batch(ids, truths, self._encodings)
        sink = pa.BufferOutputStream()
        with pa_ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        content = memoryview(sink.getvalue()).cast("B")
        if len(content) + _TAG_BYTES > _MOST_BYTES:  # nobody could read it back
            raise SnapshotError("ids as long as these are not kept in a snapshot.", remedy="no_snapshot")
        return self._seal.sealed(number + 1, _MORE, content)

    def write(self, chunk: bytes) -> None:
        """Write the next chunk."""
        self._put(chunk)
        self._chunks += 1

    def close(self) -> str:
        """Write the end, and return the digest of the whole part."""
        self._put(self._seal.sealed(self._chunks, _LAST, b""))
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as problem:
            raise cannot_be_written(problem) from None
        return self._digest.hexdigest()

    def _put(self, content: bytes) -> None:
        try:
            self._file.write(content)
        except OSError as problem:
            raise cannot_be_written(problem) from None
        self._digest.update(content)


def _as_batch(ids: Any, truths: Sequence[Truths], encodings: Sequence[Encoding]) -> Any:
    """Return rows as they are kept. How wide a column is depends on what is declared, and not on a truth."""
    columns, heads = _as_steps(ids)
    for place, (each, encoding) in enumerate(zip(truths, encodings, strict=True)):
        kind = code_dtype(max(2, len(encoding.labels)))
        narrow = kind if not len(each) or int(each.index.max()) <= np.iinfo(kind).max else np.dtype(np.uint64)
        columns[f"{place} index"] = pa.array(each.index.astype(narrow, copy=False))
        if each.suffix is None:
            continue
        head, *words = each.suffix.transpose(0, 2, 1).reshape(-1, len(each))
        # The first word says of what kind a truth is, and how long: of numbers it is always the same.
        if len(each) and bool((head == head[0]).all()):
            heads[f"{place}"] = str(head[0])
        else:
            words = [head, *words]
        columns |= {f"{place} word {number}": pa.array(np.ascontiguousarray(word)) for number, word in enumerate(words)}
    return pa.RecordBatch.from_pydict(columns).replace_schema_metadata(heads)


@dataclass(frozen=True, slots=True, repr=False)
class KeptBatch:
    """Rows of a snapshot, to be drawn from like a batch of a table: ids, and for each column its truths.

    Its `repr` shows none of them.
    """

    columns: Mapping[str, Any]
    num_rows: int

    def column(self, name: str) -> Any:
        """Return the ids, or truths."""
        return self.columns[name]


def _as_steps(ids: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return ids as they are kept: of whole numbers that ascend, as those of a snapshot do, the steps between them.

    Ids are released as they are, so that they may decide how long a file is.
    """
    if not pa.types.is_integer(ids.type) or not len(ids):
        return {"id": ids}, {}
    numbers = ids.to_numpy().astype(np.int64, copy=False).view(np.uint64)  # modulo 2^64 differences are the same
    # By pieces that stay in a cache; then without a copy that is wider than what is kept.
    pieces = (numbers[start : start + _PIECE + 1] for start in range(0, len(numbers) - 1, _PIECE))
    most = max((int(np.diff(each).max()) for each in pieces), default=0)
    steps = np.zeros(len(numbers), np.min_scalar_type(most))
    np.subtract(numbers[1:], numbers[:-1], out=steps[1:], casting="unsafe")
    return {"step": pa.array(steps)}, {"first": str(numbers[0]), "type": str(ids.type)}


def _ids(batch: Any) -> Any:
    """Return the ids that `_as_steps` kept."""
    if "id" in batch.schema.names:
        return batch.column("id")
    said = batch.schema.metadata
    kind = pa.type_for_alias(said[b"type"].decode())
    numbers = np.cumsum(batch.column("step").to_numpy(), dtype=np.uint64) + np.uint64(int(said[b"first"]))
    return pa.array(numbers.astype(kind.to_pandas_dtype()), kind)


def _from_batch(batch: Any, id_column: str, names: Sequence[str]) -> KeptBatch:
    columns: dict[str, Any] = {id_column: _ids(batch)}
    heads, rows = batch.schema.metadata or {}, batch.num_rows
    for place, name in enumerate(names):
        index = batch.column(f"{place} index").to_numpy().astype(np.uint64)
        words = [batch.column(each).to_numpy() for each in batch.schema.names if each.startswith(f"{place} word ")]
        head = heads.get(f"{place}".encode())
        if head is not None:
            words = [np.full(rows, int(head), np.uint64), *words]
        suffix = None
        if words:
            suffix = np.ascontiguousarray(np.stack(words).reshape(-1, 2, rows).transpose(0, 2, 1))
        columns[name] = Truths(index, suffix)
    return KeptBatch(columns, rows)


class SnapshotTable:
    """A snapshot that is open, as a table that can be drawn from. Its rows are in the order of their ids."""

    def __init__(self, path: Path, key: Key, digest: str) -> None:
        """Open it, or refuse what is no snapshot of this key. What it says of itself was sealed with it."""
        self.path, self._key, self._digest = path, key, digest
        with self._opened() as file:
            part = _Part.begun(file, key, sha256(), path)
            self.description = part.description
            first = part.next()
            if first is None:
                raise damaged(path)
        self._names = list(self.description.columns)
        kinds = {name: each.made_encoding().report_type for name, each in self.description.columns.items()}
        self.schema = pa.schema([(self.description.id_column, _ids(first).type), *kinds.items()])
        self.names = ColumnNames(self.schema.names)
        self.rows: int | None = None

    def batches(self, columns: Sequence[str]) -> Generator[Any]:
        """Return all rows. At the end the whole file was the one that the ledger names, or it is refused.

        So what is drawn from it may be staged while it is read, and nothing more.
        """
        digest = sha256()
        with self._opened() as file:
            while True:
                part = _Part.begun(file, self._key, digest, self.path)
                if part.description != self.description:
                    raise damaged(self.path)
                while (batch := part.next()) is not None:
                    yield _from_batch(batch, self.description.id_column, self._names)
                if not file.peek(1):
                    break
        if digest.hexdigest() != self._digest:
            raise SnapshotError(
                "{path!r} is not the snapshot that the ledger names.", remedy="snapshot_again", path=str(self.path)
            )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            with self.path.open("rb") as file:
                yield file
        except OSError as problem:
            if isinstance(problem, RelaxdpError):
                raise
            raise SnapshotError(
                "the snapshot {path!r} cannot be read: {why}.", path=str(self.path), why=problem.strerror
            ) from None


def damaged(path: Path) -> SnapshotError:
    """Return the refusal of what is no whole snapshot."""
    return SnapshotError("{path!r} is damaged, cut off or no snapshot.", remedy="snapshot_again", path=str(path))


class _Part:
    """One part that is being read."""

    def __init__(self, file: IO[bytes], seal: _Seal, digest: Any, path: Path) -> None:
        self._file, self._seal, self._digest, self._path, self._number = file, seal, digest, path, 0

    @classmethod
    def begun(cls, file: IO[bytes], key: Key, digest: Any, path: Path) -> _Part:
        """Read a header, and what was released."""
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
            raise damaged(path)
        if header[-_FINGERPRINT_BYTES:].hex() != key.fingerprint:
            raise SnapshotError("{path!r} was sealed with another key than {key}.", path=str(path), key=key.fingerprint)
        digest.update(header)
        part = cls(file, _Seal.of(key, header), digest, path)
        try:
            part.description = FileDescription.loads(part._chunk() or b"")
        except DescriptionError:
            raise damaged(path) from None
        return part

    description: FileDescription

    def next(self) -> Any | None:
        """Return the next batch; None at the end, which was sealed too."""
        chunk = self._chunk()
        if chunk is None:
            return None
        try:
            with pa_ipc.open_stream(pa.py_buffer(chunk)) as reader:
                return reader.read_next_batch()
        except (pa.ArrowException, StopIteration):
            raise damaged(self._path) from None

    def _chunk(self) -> bytes | None:
        """Return the content of the next chunk; None where it was the last one."""
        length = self._file.read(_LENGTH.size)
        if len(length) < _LENGTH.size or _LENGTH.unpack(length)[0] > _MOST_BYTES:
            raise damaged(self._path)
        chunk = self._file.read(_LENGTH.unpack(length)[0])
        self._digest.update(length)
        self._digest.update(chunk)
        number, self._number = self._number, self._number + 1
        content = self._seal.opened(number, _MORE, chunk)
        if content is None and self._seal.opened(number, _LAST, chunk) is None:
            raise damaged(self._path)
        return content
