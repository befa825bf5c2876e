"""Files of the metadata table itself: its timeline, its file groups, and which of their blocks count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.file_system_view import FileSystemView
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.fs.sub import SubStore
from hudi_sql.storage.hfile.reader import HFileCells, HFileReader
from hudi_sql.storage.log_file.blocks import BlockType, HeaderKey, LogBlock
from hudi_sql.storage.log_file.reader import decode_delete_block, read_log_blocks
from hudi_sql.storage.model.files import BaseFile, FileSlice, LogFile, PartitionPath, parse_file
from hudi_sql.storage.properties.table_config import TableConfig, load_table_config
from hudi_sql.storage.timeline.timeline import Timeline, load_timeline

__all__ = ["METADATA_FOLDER", "Layer", "MetadataFiles"]

METADATA_FOLDER = ".hoodie/metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Cells of one base file or log block; later layers win over earlier ones."""

    cells: HFileCells | None
    schema_json: str
    deleted: pa.Array | None
    """Keys that a delete block removes."""
    path: str


Selection = Callable[[HFileReader], HFileCells]
"""Which cells of an HFile are wanted."""


class MetadataFiles:
    """The metadata table of a data table, as files."""

    def __init__(
        self, store: Store, config: TableConfig, timeline: Timeline, pending: frozenset[str]
    ) -> None:
        self.store = store
        self.config = config
        self.timeline = timeline
        self._pending = pending
        self._slices: dict[str, tuple[FileSlice, ...]] = {}

    @classmethod
    def open(cls, data_store: Store, data_timeline: Timeline) -> MetadataFiles:
        """Open the metadata table that a data table announces.

        Raises:
            CorruptTableError: It is announced and not there.
        """
        store = SubStore(data_store, METADATA_FOLDER)
        if not store.exists(".hoodie/hoodie.properties"):
            raise CorruptTableError(
                "The table's properties announce a metadata table, and there is none",
                table=data_store.uri,
                path=METADATA_FOLDER,
                hint="Remove hoodie.table.metadata.partitions from .hoodie/hoodie.properties: without a metadata table "
                "files are found by listing, and Spark builds a new one at its next write.",
            )
        config = load_table_config(store)
        pending = frozenset(str(instant.requested) for instant in data_timeline.pending)
        return cls(store, config, load_timeline(store, config), pending)

    def slices(self, partition: str) -> tuple[FileSlice, ...]:
        """The newest slice of each file group of a metadata partition, by file id."""
        if partition not in self._slices:
            lister = _Lister(self.store, partition)
            view = FileSystemView(lister, self.timeline, table_version=self.config.version)
            self._slices[partition] = view.latest_slices([PartitionPath(partition)])
            if not self._slices[partition]:
                raise CorruptTableError(
                    f"The metadata partition {partition} is announced and has no files",
                    table=self.store.uri,
                    path=f"{METADATA_FOLDER}/{partition}",
                    hint="Remove its name from hoodie.table.metadata.partitions; Spark builds it anew.",
                )
        return self._slices[partition]

    def layers(self, piece: FileSlice, select: Selection) -> Iterator[Layer]:
        """What a file slice holds, oldest first."""
        if piece.base_file is not None:
            yield self._base(piece.base_file, select)
        for log in piece.log_files:
            yield from self._log(log, select)

    def _base(self, base: BaseFile, select: Selection) -> Layer:
        store, path = self.store, base.path
        reader = HFileReader(
            lambda start, length: store.read(path, start=start, length=length),
            store.info(path).size_bytes,
            f"{METADATA_FOLDER}/{path}",
        )
        return Layer(cells=select(reader), schema_json=reader.schema_json, deleted=None, path=path)

    def _log(self, log: LogFile, select: Selection) -> Iterator[Layer]:
        path = f"{METADATA_FOLDER}/{log.path}"
        for block in read_log_blocks(self.store.read(log.path), path):
            if not self._counts(block):
                continue
            if block.type is BlockType.HFILE_DATA:
                reader = HFileReader.of_bytes(block.content, path)
                schema = block.headers.get(HeaderKey.SCHEMA) or reader.schema_json
                yield Layer(cells=select(reader), schema_json=schema, deleted=None, path=path)
            elif block.type is BlockType.DELETE:
                deleted = decode_delete_block(block, path).field("recordKey")
                if len(deleted):
                    yield Layer(cells=None, schema_json="", deleted=deleted, path=path)

    def _counts(self, block: LogBlock) -> bool:
        """A block of an instant that is pending on the data timeline does not count (metadata table notes §10)."""
        return block.instant not in self._pending


class _Lister:
    """Files of one metadata partition."""

    def __init__(self, store: Store, partition: str) -> None:
        self._store = store
        self._partition = PartitionPath(partition)

    def list_partitions(self) -> tuple[PartitionPath, ...]:
        return (self._partition,)

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> dict[PartitionPath, tuple[BaseFile | LogFile, ...]]:
        found: list[BaseFile | LogFile] = []
        for entry in self._store.list(self._partition):
            file = None if entry.is_folder else parse_file(self._partition, entry.name, entry.size_bytes)
            if file is not None:
                found.append(file)
        return {partition: tuple(found) for partition in partitions}
