"""Which files belong together, and which of them a reader sees (base file notes §6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from hudi_sql.storage.fs.base import FileInfo, Store
from hudi_sql.storage.model.files import BaseFile, FileId, FileSlice, LogFile, PartitionPath, parse_file
from hudi_sql.storage.model.instant import Action, InstantTime
from hudi_sql.storage.model.protocols import FileLister
from hudi_sql.storage.properties.partition_metadata import PARTITION_METADATA_FILES
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.timeline.read import read_commit
from hudi_sql.storage.timeline.timeline import Timeline

__all__ = ["FileSystemView", "ReplacedGroups", "StoreLister", "load_replaced_groups"]

ReplacedGroups = frozenset[tuple[PartitionPath, FileId]]
_FIRST_VERSION_WITH_COMPLETION_TIMES = 8
_LISTING_THREADS = 16


class FileSystemView:
    """File slices as of a timeline.

    Slices come with committed files only, newest last in a group, groups by partition and file id. Base files
    of pending compactions are no committed files, so the logs on top of one fall to the slice before it; so
    do Hudi's readers merge the two.

    Args:
        lister: Names and sizes of all data files, committed or not.
        timeline: Decides what is committed; cut to a point in time for time travel.
        table_version: Tells how log files belong to base files.
        replaced: File groups that a completed replacecommit of the timeline took away.
    """

    def __init__(
        self,
        lister: FileLister,
        timeline: Timeline,
        *,
        table_version: int,
        replaced: ReplacedGroups = frozenset(),
    ) -> None:
        self._lister = lister
        self._timeline = timeline
        self._has_completion_times = table_version >= _FIRST_VERSION_WITH_COMPLETION_TIMES
        self._replaced = replaced
        self._committed: dict[InstantTime, bool] = {}

    @classmethod
    def load(
        cls, lister: FileLister, timeline: Timeline, *, store: Store, config: TableConfig
    ) -> FileSystemView:
        """Build the view of a table, reading what the timeline's replacecommits replaced."""
        replaced = load_replaced_groups(store, config, timeline)
        return cls(lister, timeline, table_version=config.version, replaced=replaced)

    @property
    def replaced(self) -> ReplacedGroups:
        """File groups that are out of sight."""
        return self._replaced

    def latest_slices(self, partitions: Sequence[PartitionPath] | None = None) -> tuple[FileSlice, ...]:
        """The newest slice of each file group, of some partitions or of all."""
        return tuple(slices[-1] for slices in self._groups(partitions))

    def all_slices(self, partitions: Sequence[PartitionPath] | None = None) -> tuple[FileSlice, ...]:
        """Every committed slice of each file group that is in sight, oldest first within a group."""
        return tuple(item for slices in self._groups(partitions) for item in slices)

    def latest_base_files(self, partitions: Sequence[PartitionPath] | None = None) -> tuple[BaseFile, ...]:
        """Base files of the newest slices; groups that have only logs have none."""
        files = (item.base_file for item in self.latest_slices(partitions))
        return tuple(file for file in files if file is not None)

    def _groups(self, partitions: Sequence[PartitionPath] | None) -> Iterator[list[FileSlice]]:
        wanted = self._lister.list_partitions() if partitions is None else sorted(set(partitions))
        listed = self._lister.list_files(wanted)
        for partition in wanted:
            groups: defaultdict[FileId, list[BaseFile | LogFile]] = defaultdict(list)
            for file in listed.get(partition, ()):
                groups[file.file_id].append(file)
            for file_id in sorted(groups):
                if (partition, file_id) not in self._replaced and (slices := self._slices(groups[file_id])):
                    yield slices

    def _slices(self, files: Iterable[BaseFile | LogFile]) -> list[FileSlice]:
        """Slices of one file group, oldest first."""
        bases: dict[InstantTime, BaseFile] = {}
        logs: list[LogFile] = []
        for file in files:
            if isinstance(file, BaseFile):
                # A retried task may have left a second file; the choice must not hang on the listing.
                other = bases.get(file.instant)
                if self._is_committed(file.instant) and (other is None or file.name > other.name):
                    bases[file.instant] = file
            elif not file.is_cdc and self._is_visible_log(file):
                logs.append(file)
        instants = sorted(bases)
        on_top: defaultdict[InstantTime, list[LogFile]] = defaultdict(list)
        for log in logs:
            on_top[self._base_of(log, instants)].append(log)
        return [
            _slice(instant, bases.get(instant), on_top.get(instant, []))
            for instant in sorted({*instants, *on_top})
        ]

    def _is_visible_log(self, log: LogFile) -> bool:
        if self._has_completion_times:
            return self._is_committed(log.instant)
        # Version 6 names a log after its base file, possibly that of a pending compaction: the
        # instants inside its blocks tell what is committed.
        query_time = self._timeline.query_time
        return query_time is None or log.instant <= query_time

    def _base_of(self, log: LogFile, bases: Sequence[InstantTime]) -> InstantTime:
        """The newest base file at the log's completion; a log before any base starts a slice of its own."""
        when = log.instant
        if self._has_completion_times:
            when = self._timeline.completion_time(log.instant) or when
        older = [instant for instant in bases if instant <= when]
        if older:
            return older[-1]
        return InstantTime("") if self._has_completion_times else log.instant

    def _is_committed(self, instant: InstantTime) -> bool:
        known = self._committed.get(instant)
        if known is None:
            known = self._committed[instant] = self._timeline.is_committed(instant)
        return known


class StoreLister:
    """Lists a table's folders: for tables without a metadata table.

    A folder is a partition when it has a `.hoodie_partition_metadata` file, as for Hudi.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def list_partitions(self) -> tuple[PartitionPath, ...]:
        """All partitions that have the file, sorted; without partition fields that is the empty path."""
        found: list[PartitionPath] = []
        level = [""]
        while level:
            below: list[str] = []
            for folder, entries in zip(level, self._list(level), strict=True):
                if any(entry.name in PARTITION_METADATA_FILES for entry in entries):
                    found.append(PartitionPath(folder))
                below += [entry.path for entry in entries if entry.is_folder and entry.path != ".hoodie"]
            level = below
        return tuple(sorted(found))

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> dict[PartitionPath, tuple[BaseFile | LogFile, ...]]:
        """Data files of each partition, by name."""
        return {
            partition: tuple(_data_files(partition, entries))
            for partition, entries in zip(partitions, self._list(partitions), strict=True)
        }

    def _list(self, folders: Sequence[str]) -> list[list[FileInfo]]:
        if len(folders) <= 1 or self._store.local_path("") is not None:
            return [self._store.list(folder) for folder in folders]
        with ThreadPoolExecutor(_LISTING_THREADS, thread_name_prefix="hudi-sql-list") as threads:
            return list(threads.map(self._store.list, folders))


def load_replaced_groups(store: Store, config: TableConfig, timeline: Timeline) -> ReplacedGroups:
    """File groups that the completed replacecommits of a timeline took away.

    Archived replacecommits are not read: cleaning has removed their files before they are archived.
    """
    replaced: set[tuple[PartitionPath, FileId]] = set()
    for instant in timeline.completed_writes:
        if instant.action is Action.REPLACE_COMMIT:
            commit = read_commit(store, config, instant)
            for partition, file_ids in commit.replaced_file_ids.items():
                replaced.update((partition, file_id) for file_id in file_ids)
    return frozenset(replaced)


def _data_files(partition: PartitionPath, entries: Iterable[FileInfo]) -> Iterator[BaseFile | LogFile]:
    for entry in entries:
        if not entry.is_folder and (file := parse_file(partition, entry.name, entry.size_bytes)):
            yield file


def _slice(instant: InstantTime, base: BaseFile | None, logs: Sequence[LogFile]) -> FileSlice:
    ordered = tuple(sorted(logs, key=lambda log: log.merge_order))
    any_file = base or ordered[0]
    return FileSlice(
        partition=any_file.partition,
        file_id=any_file.file_id,
        # Logs without a base file make a slice that is named after the first of them.
        instant=instant if base is not None else ordered[0].instant,
        base_file=base,
        log_files=ordered,
    )
