"""Snapshots: the rows that a column was released from, sealed with the vault's key.

A snapshot lets `relax` work without the table, and lets every later release be compared with all rows ever released. It
holds ids and true values as the stream takes them. Rows of the last release are *present*, all others have *left*.

A file is a sequence of parts. A part is a header (magic bytes, 32 random bytes, the key's fingerprint) and chunks under
AES-256-GCM, with a key that HKDF derives for these random bytes. The nonce of a chunk is its kind and its number among
the chunks of that kind, and the last chunk counts all others, so that none can be exchanged, repeated or cut off.
Nothing is compressed: the length of a file depends on the ids and on the number of rows, never on a true value (of
words, only on how long they are together).
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import struct
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as pa_ipc
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from relaxdp.errors import VaultError, replace_os_error
from relaxdp.mechanisms.base import TrueValues
from relaxdp.mechanisms.report_arrays import get_code_dtype
from relaxdp.sampling.keys import Key, add_length_prefix
from relaxdp.sampling.private_file import sync_folder

_MAGIC = b"relaxdp snapshot 2\n"
_SALT_BYTES, _FINGERPRINT_BYTES = 32, 8
_HEADER_BYTES = len(_MAGIC) + _SALT_BYTES + _FINGERPRINT_BYTES
_CHUNK_HEAD = struct.Struct("<IB")
_MAX_CHUNK_BYTES = 1 << 30
_PIECE = 1 << 14
SNAPSHOT_SUFFIX = ".snapshot"
STAGED_PREFIX = ".staged-"
_RESTORE = "Restore it from a backup of the vault, or release the table under a new name, at full cost."


class ChunkKind(IntEnum):
    """The kinds of chunks in a snapshot, by their content."""

    DESCRIPTION = 0
    PRESENT = 1
    LEFT = 2
    PASSTHROUGH = 3
    END = 4


# True values, as they are kept and compared.

TrueRowValues = Any
"""True values as a mechanism takes them, or the words of a Bloom filter as Arrow text."""


def take_values(values: TrueRowValues, indexes: NDArray[np.intp]) -> TrueRowValues:
    """Return the true values of some rows."""
    return values[indexes] if isinstance(values, TrueValues) else values.take(pa.array(indexes))


def concatenate_values(parts: list[TrueRowValues]) -> TrueRowValues:
    """Return the true values of consecutive parts."""
    if len(parts) == 1:
        return parts[0]
    truths = [part for part in parts if isinstance(part, TrueValues)]
    if not truths:
        return pa.concat_arrays(parts)
    suffixes = [part.suffix for part in truths if part.suffix is not None]
    index = np.concatenate([part.index for part in truths])
    return TrueValues(index, np.concatenate(suffixes, axis=1) if suffixes else None)


def compare_values(old: TrueRowValues, new: TrueRowValues) -> NDArray[np.bool_]:
    """Compare two columns of values row by row: return where the stream takes both values alike."""
    if not isinstance(old, TrueValues) or not isinstance(new, TrueValues):
        return np.asarray(pc.equal(old, new).to_numpy(zero_copy_only=False), dtype=bool)
    same = np.asarray(old.index == new.index)
    if old.suffix is None and new.suffix is None:
        return same
    if old.suffix is None or new.suffix is None or old.suffix.shape != new.suffix.shape:
        return np.zeros(len(same), dtype=bool)
    return np.asarray(same & (old.suffix == new.suffix).all(axis=(0, 2)))


@dataclass(frozen=True, slots=True, repr=False)
class TrueRows:
    """Ids in ascending order, and the true value of each. Its `repr` shows none of them."""

    ids: pa.Array
    values: TrueRowValues

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[np.intp]) -> TrueRows:
        """Return some of the rows."""
        return TrueRows(self.ids.take(pa.array(rows)), take_values(self.values, rows))

    def slice(self, start: int, count: int | None = None) -> TrueRows:
        """Return consecutive rows, as Arrow does."""
        ids = self.ids.slice(start, count)
        return TrueRows(ids, self.values[start : start + len(ids)])


def normalize_ids(ids: pa.Array) -> pa.Array:
    """Normalize ids to the form in which they are kept and compared: one type for each kind of id."""
    ids = getattr(ids, "storage", ids)
    kind = ids.type
    if pa.types.is_integer(kind):
        is_large = kind == pa.uint64() and len(ids) and pc.max(ids).as_py() > np.iinfo(np.int64).max
        return ids if is_large else ids.cast(pa.int64())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ids.cast(pa.large_string())
    return ids.cast(pa.large_binary())


def restore_ids(ids: pa.Array, arrow_type: Any) -> pa.Array:
    """Restore normalized ids to the type that they had in the table: a UUID is not the same id as its bytes."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow_type, ids.cast(arrow_type.storage_type))
    return ids.cast(arrow_type)


def parse_id_type(text: str) -> Any:
    """Parse the type of the ids, as the description of a snapshot states it."""
    if text == "uuid":
        return pa.uuid()
    name, _, width = text.rstrip("]").partition("[")
    return pa.binary(int(width)) if width else pa.type_for_alias(name)


def cast_to_common_type(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return two columns of normalized ids as one type: signed and unsigned numbers meet as decimals."""
    if one.type == other.type:
        return one, other
    exact = pa.decimal128(20, 0)
    return one.cast(exact), other.cast(exact)


def concatenate_ids(parts: list[pa.Array]) -> pa.Array:
    """Return the ids of consecutive parts as one column."""
    if len({part.type for part in parts}) == 1:
        return pa.concat_arrays(parts)
    exact = pa.concat_arrays([part.cast(pa.decimal128(20, 0)) for part in parts])
    return exact if pc.min(exact).as_py() < 0 else exact.cast(pa.uint64())


def _pack_rows(rows: TrueRows, labels: int) -> Any:
    """Pack rows into an Arrow batch. The width of a column depends on what is declared, never on a true value."""
    columns, heads = _pack_ids(rows.ids)
    if not isinstance(rows.values, TrueValues):
        columns["word"] = rows.values.cast(pa.large_string())
    else:
        narrow = get_code_dtype(max(2, labels))
        if len(rows) and int(rows.values.index.max()) > np.iinfo(narrow).max:
            narrow = np.dtype(np.uint64)
        columns["index"] = pa.array(rows.values.index.astype(narrow, copy=False))
        if rows.values.suffix is not None:
            head, *words = rows.values.suffix.transpose(0, 2, 1).reshape(-1, len(rows))
            # The first word holds type and length of a value: for numbers it is always the same.
            if len(rows) and bool((head == head[0]).all()):
                heads["head"] = str(head[0])
            else:
                words = [head, *words]
            columns |= {f"word {place}": pa.array(np.ascontiguousarray(word)) for place, word in enumerate(words)}
    return pa.RecordBatch.from_pydict(columns).replace_schema_metadata(heads)


def _pack_ids(ids: pa.Array) -> tuple[dict[str, Any], dict[str, str]]:
    """Pack ids as they are kept: of ascending integers the steps between them, in the narrowest type."""
    if not pa.types.is_integer(ids.type) or not len(ids):
        return {"id": ids}, {}
    numbers = ids.to_numpy().view(np.uint64)  # modulo 2^64 the differences are the same
    # In pieces that stay in a cache, and without a copy that is wider than what is kept.
    pieces = (numbers[start : start + _PIECE + 1] for start in range(0, len(numbers) - 1, _PIECE))
    largest = max((int(np.diff(piece).max()) for piece in pieces), default=0)
    steps = np.zeros(len(numbers), np.min_scalar_type(largest))
    np.subtract(numbers[1:], numbers[:-1], out=steps[1:], casting="unsafe")
    return {"step": pa.array(steps)}, {"first": str(numbers[0]), "type": str(ids.type)}


def _unpack_rows(batch: Any) -> TrueRows:
    heads, count = batch.schema.metadata or {}, batch.num_rows
    if "step" in batch.schema.names:
        numbers = np.cumsum(batch.column("step").to_numpy(), dtype=np.uint64) + np.uint64(int(heads[b"first"]))
        ids = pa.array(numbers.view(np.int64) if heads[b"type"] == b"int64" else numbers)
    else:
        ids = batch.column("id")
    if "word" in batch.schema.names:
        return TrueRows(ids, batch.column("word"))
    index = batch.column("index").to_numpy().astype(np.uint64)
    words = [batch.column(name).to_numpy() for name in batch.schema.names if name.startswith("word ")]
    if b"head" in heads:
        words = [np.full(count, int(heads[b"head"]), np.uint64), *words]
    suffix = np.ascontiguousarray(np.stack(words).reshape(-1, 2, count).transpose(0, 2, 1)) if words else None
    return TrueRows(ids, TrueValues(index, suffix))


# Sealing.


class PartSealer:
    """Seals one part of a snapshot. Chunks are sealed (encrypted) by any thread, and written by one."""

    def __init__(self, write: Callable[[bytes], object], key: Key, description: Mapping[str, Any]) -> None:
        """Begin the part. Its key was never used before, so that the nonces may be counted."""
        self._write = write
        self._header = _MAGIC + secrets.token_bytes(_SALT_BYTES) + bytes.fromhex(key.fingerprint)
        self._cipher = _derive_part_cipher(key, self._header)
        self._labels = int(description.get("labels", 2))
        self._counts: Counter[int] = Counter()
        self._write(self._header)
        self.write(self._seal(ChunkKind.DESCRIPTION, 0, json.dumps(description, ensure_ascii=False).encode()))

    def seal_rows(self, kind: ChunkKind, number: int, rows: TrueRows) -> bytes:
        """Seal rows as a chunk, and return it; `number` counts the chunks of this kind from 0."""
        return self.seal_batch(kind, number, _pack_rows(rows, self._labels))

    def seal_batch(self, kind: ChunkKind, number: int, batch: Any) -> bytes:
        """Seal an Arrow batch as a chunk, and return it."""
        sink = pa.BufferOutputStream()
        with pa_ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return self._seal(kind, number, memoryview(sink.getvalue()).cast("B"))

    def write(self, chunk: bytes) -> None:
        """Write the next chunk of its kind."""
        self._counts[chunk[_CHUNK_HEAD.size - 1]] += 1
        self._write(chunk)

    def close(self) -> None:
        """Write the last chunk, which counts all others."""
        counts = {ChunkKind(kind).name: number for kind, number in sorted(self._counts.items())}
        self._write(self._seal(ChunkKind.END, 0, json.dumps(counts).encode()))

    def _seal(self, kind: ChunkKind, chunk_number: int, content: Any) -> bytes:
        chunk = self._cipher.encrypt(_make_nonce(kind, chunk_number), content, self._header)
        if len(chunk) > _MAX_CHUNK_BYTES:
            raise VaultError(
                "The vault cannot store the rows: a batch takes over 1 GiB.", hint="Use shorter ids or fewer columns."
            )
        return _CHUNK_HEAD.pack(len(chunk), kind) + chunk


def _derive_part_cipher(key: Key, header: bytes) -> AESGCM:
    salt = header[len(_MAGIC) : len(_MAGIC) + _SALT_BYTES]
    return AESGCM(key.derive(add_length_prefix(b"snapshot") + add_length_prefix(salt)))


def _make_nonce(chunk_kind: int, number: int) -> bytes:
    return struct.pack("<IQ", chunk_kind, number)


def start_snapshot_digest(key: Key) -> hmac.HMAC:
    """Return the start of a snapshot's digest. It is keyed, so that a guess of the content cannot be checked."""
    return hmac.new(key.derive(add_length_prefix(b"snapshot digest")), digestmod=sha256)


class StagedSnapshot:
    """A snapshot that is being written in the vault, under a name that no event mentions yet."""

    def __init__(self, folder: Path, key: Key) -> None:
        self._folder, self._key, self._mac = folder, key, start_snapshot_digest(key)
        self.place = folder / f"{STAGED_PREFIX}{secrets.token_hex(8)}"
        self._file: IO[bytes] | None = None

    def start_part(self, description: Mapping[str, Any]) -> PartSealer:
        """Begin a part of the file."""
        return PartSealer(self.append, self._key, description)

    def append(self, content: bytes) -> None:
        """Append sealed bytes: those of a part that was sealed here, or by a worker."""
        with _replace_write_errors():
            self._open().write(content)
        self._mac.update(content)

    def close(self) -> str:
        """Make the file durable under the name of its digest, and return the digest."""
        digest = self._mac.hexdigest()
        with _replace_write_errors():
            with self._open() as file:
                file.flush()
                os.fsync(file.fileno())
            kept = get_snapshot_path(self._folder, digest)
            self.place.rename(kept)
            self.place = kept
            sync_folder(self._folder)
        return digest

    def discard(self) -> None:
        """Remove the file, finished or not."""
        with suppress(OSError):  # a full disk rejects the last bytes here too
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            self.place.unlink(missing_ok=True)

    def _open(self) -> IO[bytes]:
        """Open the file for its first bytes, so that a transaction knows of the snapshot before the file exists."""
        if self._file is None:
            self._file = os.fdopen(os.open(self.place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        return self._file


def _replace_write_errors() -> AbstractContextManager[None]:
    hint = "Free some space in the vault's folder, or make it writable, and run the release again."
    return replace_os_error(VaultError, "The snapshot cannot be written: {why}.", hint=hint)


def get_snapshot_path(folder: Path, digest: str) -> Path:
    """Return the file of a snapshot."""
    return folder / f"{digest}{SNAPSHOT_SUFFIX}"


# Reading.


class Snapshot:
    """A snapshot that the ledger names by its digest."""

    def __init__(self, folder: Path, digest: str, key: Key) -> None:
        self.path, self._digest, self._key = get_snapshot_path(folder, digest), digest, key

    def read_description(self) -> dict[str, Any]:
        """Return the description of the rows."""
        with self._open() as file:
            return _SealedPartReader(file, self._key, start_snapshot_digest(self._key), self.path).description

    def read_rows(self, kind: ChunkKind) -> Iterator[TrueRows]:
        """Return the rows of one kind, chunk by chunk. At the end the whole file was the one that the ledger names."""
        for batch in self.read_batches(kind):
            rows = _unpack_rows(batch)
            if not pa.types.is_decimal(rows.ids.type):
                yield rows
                continue
            negative = pc.sum(pc.less(rows.ids, 0)).as_py()
            for part, type_ in ((rows.slice(0, negative), pa.int64()), (rows.slice(negative), pa.uint64())):
                yield TrueRows(part.ids.cast(type_), part.values)

    def read_all_rows(self) -> Iterator[tuple[ChunkKind, TrueRows]]:
        """Return all rows ever released, with their kind."""
        for kind in (ChunkKind.PRESENT, ChunkKind.LEFT):
            for rows in self.read_rows(kind):
                yield kind, rows

    def read_batches(self, kind: ChunkKind) -> Generator[Any]:
        """Return the batches of one kind, as they were sealed."""
        mac = start_snapshot_digest(self._key)
        with self._open() as file:
            while True:
                yield from _SealedPartReader(file, self._key, mac, self.path).read(kind)
                if not file.peek(1):  # type: ignore[attr-defined]
                    break
        if not hmac.compare_digest(mac.hexdigest(), self._digest):
            raise _make_damaged_error(self.path)

    def verify(self) -> None:
        """Read the whole file, and reject one that is not the one that the ledger names."""
        for _ in self.read_batches(ChunkKind.END):
            pass

    def _open(self) -> IO[bytes]:
        sentence = "The snapshot '{name}' of the vault cannot be read: {why}."
        with replace_os_error(VaultError, sentence, hint=_RESTORE, name=self.path.name[:12]):
            return self.path.open("rb")


class _SealedPartReader:
    """Reads one sealed part of a snapshot."""

    def __init__(self, file: IO[bytes], key: Key, mac: hmac.HMAC, path: Path) -> None:
        self._file, self._mac, self._path = file, mac, path
        header = self._read(_HEADER_BYTES)
        if not header.startswith(_MAGIC):
            raise _make_damaged_error(path)
        if header[-_FINGERPRINT_BYTES:].hex() != key.fingerprint:
            raise VaultError(
                "The snapshot '{name}' (a copy of rows) was not encrypted with the vault's key (fingerprint {key}).",
                hint="Correct the key in vault.toml if it is wrong. Otherwise restore the vault from a backup.",
                name=path.name[:12],
                key=key.fingerprint,
            )
        self._header, self._cipher, self._counts = header, _derive_part_cipher(key, header), Counter[int]()
        self.description: dict[str, Any] = self._read_json_chunk(ChunkKind.DESCRIPTION, *self._read_next_chunk())

    def read(self, wanted: ChunkKind) -> Iterator[Any]:
        """Return the batches of one kind; other chunks are counted and not opened."""
        while True:
            kind, chunk = self._read_next_chunk()
            if kind == ChunkKind.END:
                counts = {
                    ChunkKind(each).name: number
                    for each, number in sorted(self._counts.items())
                    if each != ChunkKind.END
                }
                if self._read_json_chunk(ChunkKind.END, kind, chunk) != counts:
                    raise _make_damaged_error(self._path)
                return
            if kind == wanted:
                content = self._open(kind, self._counts[kind] - 1, chunk)
                try:
                    with pa_ipc.open_stream(pa.py_buffer(content)) as reader:
                        batch = reader.read_next_batch()
                except (pa.ArrowException, StopIteration):
                    raise _make_damaged_error(self._path) from None
                yield batch

    def _read_next_chunk(self) -> tuple[int, bytes]:
        length, kind = _CHUNK_HEAD.unpack(self._read(_CHUNK_HEAD.size))
        if length > _MAX_CHUNK_BYTES or kind not in tuple(ChunkKind):
            raise _make_damaged_error(self._path)
        self._counts[kind] += 1
        return kind, self._read(length)

    def _read(self, length: int) -> bytes:
        content = self._file.read(length)
        if len(content) < length:
            raise _make_damaged_error(self._path)
        self._mac.update(content)
        return content

    def _open(self, kind: int, number: int, chunk: bytes) -> bytes:
        try:
            return self._cipher.decrypt(_make_nonce(kind, number), chunk, self._header)
        except InvalidTag:
            raise _make_damaged_error(self._path) from None

    def _read_json_chunk(self, wanted_kind: ChunkKind, kind: int, chunk: bytes) -> Any:
        if kind != wanted_kind:
            raise _make_damaged_error(self._path)
        return json.loads(self._open(kind, 0, chunk))


def _make_damaged_error(path: Path) -> VaultError:
    return VaultError(
        "The snapshot '{name}', the vault's copy of released rows, is damaged or is not the one that the ledger names.",
        hint=_RESTORE,
        name=path.name[:12],
    )
