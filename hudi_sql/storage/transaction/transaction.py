"""The one sequence in which anything is committed (write protocol notes §1).

The table lock is held twice, and only for short: to draw an instant, and to complete it. Rows are evaluated and files
are written in between, without it; what may have happened meanwhile is checked before completing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    HudiSqlError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    TransientStorageError,
)
from hudi_sql.storage.avro.payloads import PayloadKind, decode_payload, encode_commit_metadata
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.commit import CommitMetadata
from hudi_sql.storage.model.files import FileId, PartitionPath
from hudi_sql.storage.model.instant import Action, Instant, InstantTime, State
from hudi_sql.storage.properties.partition_metadata import ensure_partition_metadata
from hudi_sql.storage.properties.table_config import TableConfig, load_table_config
from hudi_sql.storage.timeline.clock import InstantClock
from hudi_sql.storage.timeline.read import read_commit
from hudi_sql.storage.timeline.timeline import Timeline, load_timeline
from hudi_sql.storage.timeline.write import (
    complete,
    create_inflight,
    create_requested,
    delete_instant_file,
    instant_path,
)
from hudi_sql.storage.transaction.conflicts import (
    Footprint,
    OtherCommit,
    check_conflicts,
    check_pending_clustering,
)
from hudi_sql.storage.transaction.heartbeat import Heartbeat
from hudi_sql.storage.transaction.locks.base import TableLock
from hudi_sql.storage.transaction.locks.provider import open_lock
from hudi_sql.storage.transaction.markers import (
    Marker,
    MarkerKind,
    create_marker,
    delete_markers,
    read_markers,
)
from hudi_sql.storage.transaction.rollback import roll_back_dead_writes

__all__ = ["MetadataSteps", "Transaction", "pending_clustering_groups"]

_log = logging.getLogger(__name__)

FileGroup = tuple[PartitionPath, FileId]
_MOST_DRAWS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSteps:
    """What a transaction asks of the metadata table; a table without one has steps that do nothing."""

    write: Callable[[InstantTime, CommitMetadata], InstantTime | None]
    """Write the table's own deltacommit for a data instant, under the lock, before that instant completes. Gives its
    completion time, if there is a metadata table."""
    discard: Callable[[InstantTime], None]
    """Remove every trace of such a deltacommit of an instant that will not complete."""
    roll_back: Callable[[InstantTime, InstantTime], None]
    """The same for a commit of another writer that died, as an instant: (dead instant, rollback instant)."""


class Transaction:
    """One commit of one table: `begin`, then mark and write files, then `commit` or `abort`.

    Not for several threads, but for `mark`, which writer tasks call.
    """

    def __init__(
        self,
        store: Store,
        config: TableConfig,
        settings: WriteConfig,
        seen: Timeline,
        metadata: MetadataSteps,
    ) -> None:
        self._store = store
        self._config = config
        self._settings = settings
        self._seen = seen
        self._metadata = metadata
        self._lock: TableLock = open_lock(store, settings.lock)
        self._clock = InstantClock(config.timeline_zone)
        self._instant: Instant | None = None
        self._heartbeat: Heartbeat | None = None
        self._known_partitions: set[PartitionPath] = set()
        self._guard = threading.Lock()
        self._metadata_written = False
        self._completing = False
        """Set from the moment at which the instant may be complete: from then on nothing is deleted."""
        self.lock_held_ms = 0.0

    @property
    def instant(self) -> InstantTime:
        """Requested time of the commit."""
        assert self._instant is not None, "the transaction was not begun"
        return self._instant.requested

    def begin(self, action: Action) -> None:
        """Roll back what died, draw the instant and make it known, requested.

        Raises:
            LockError: Another writer holds the lock.
            ConflictError: The table was upgraded since the snapshot.
        """
        with self._locked():
            self._check_same_table()
            timeline = load_timeline(self._store, self._config)
            self._clock.observe(timeline.newest_time)
            roll_back_dead_writes(
                self._store,
                self._config,
                timeline,
                clock=self._clock,
                heartbeat=self._settings.heartbeat,
                in_metadata=self._metadata.roll_back,
            )
            self._instant, self._heartbeat = self._draw(action)

    def _draw(self, action: Action) -> tuple[Instant, Heartbeat]:
        """Draw an instant and make it known; a writer that knows nothing of our lock may have taken it."""
        for _ in range(_MOST_DRAWS):
            requested = self._clock.next_instant()
            heartbeat = Heartbeat(self._store, requested, self._settings.heartbeat)
            try:
                heartbeat.start()
                return create_requested(self._store, self._config, requested, action), heartbeat
            except ObjectExistsError:
                heartbeat.stop(remove=heartbeat.is_started)
            except BaseException:
                heartbeat.stop(remove=heartbeat.is_started)
                raise
        raise ConflictError(
            f"No free instant was found in {_MOST_DRAWS} attempts: other writers draw theirs at the same moments",
            hint="Run the statement again; writers of one table need a common lock provider.",
            table=self._store.uri,
        )

    def start(self, planned: CommitMetadata) -> None:
        """Make the instant inflight, with the counts that are planned."""
        assert self._instant is not None
        payload = encode_commit_metadata(planned)
        self._instant = create_inflight(self._store, self._config, self._instant, payload)

    def mark(self, partition: PartitionPath, file_name: str, kind: MarkerKind) -> None:
        """Make a data file known before it is written, and its folder a partition. Safe from any thread."""
        create_marker(self._store, self.instant, Marker(partition=partition, file_name=file_name, kind=kind))
        with self._guard:
            if partition in self._known_partitions:
                return
            ensure_partition_metadata(
                self._store,
                partition,
                self.instant,
                use_base_format=self._config.partition_metafile_use_base_format,
            )
            self._known_partitions.add(partition)

    def commit(self, metadata: CommitMetadata, footprint: Footprint) -> Instant:
        """Complete the instant: from then on readers see its files.

        Raises:
            ConflictError: Another writer changed what this one read or writes. Nothing was committed; the
                caller must `abort`.
            CommitOutcomeUnknownError: The last step was tried and its outcome could not be found out.
        """
        assert self._instant is not None
        self._delete_strays(metadata)
        with self._locked():
            self._check_still_ours(metadata)
            self._check_same_table()
            timeline = load_timeline(self._store, self._config)
            self._check_conflicts(timeline, footprint)
            self._clock.observe(timeline.newest_time)
            self._metadata_written = True
            self._clock.observe(self._metadata.write(self.instant, metadata))
            self._lock.check_held()
            try:
                done = self._complete(metadata)
            except CommitOutcomeUnknownError:
                self._let_go()
                raise
        _log.info("committed %s to %s: %s", self.instant, self._store.uri, metadata.operation.value)
        self._clean_up()
        return done

    def abort(self) -> None:
        """Remove every trace of a commit that certainly did not happen: files, markers, instant.

        Partitions that it made stay partitions, as after a rollback: another writer may count on that already.
        Where the commit may have happened nothing is deleted. What cannot be removed is left to the next writer,
        which finds this one dead.
        """
        if self._instant is None or self._completing:
            self._let_go()
            return
        try:
            with self._locked():
                for marker in read_markers(self._store, self.instant):
                    self._store.delete(marker.path)
                if self._metadata_written:
                    self._metadata.discard(self.instant)
                for state in (State.INFLIGHT, State.REQUESTED):
                    stale = replace(self._instant, state=state, file_name="")
                    delete_instant_file(self._store, self._config, stale)
                self._clean_up()
        except HudiSqlError as exc:
            _log.warning("the failed commit %s is left to be rolled back: %s", self.instant, exc)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Stop to live, if that is still to be done: whoever comes next decides about the instant."""
        if self._heartbeat is not None:
            heartbeat, self._heartbeat = self._heartbeat, None
            heartbeat.stop(remove=False)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._lock.acquire()
        started = time.perf_counter()
        try:
            yield
        finally:
            self.lock_held_ms += (time.perf_counter() - started) * 1000
            try:
                self._lock.release()
            except HudiSqlError as exc:
                # Must not turn a commit that happened into a failure.
                _log.warning("the lock of %s could not be given back: %s", self._store.uri, exc)

    def _check_same_table(self) -> None:
        """Spark upgrades old tables on any write, and drops metadata partitions that it is not told to keep."""
        now = load_table_config(self._store)
        before = self._config
        same = (
            now.version == before.version
            and now.timeline_path == before.timeline_path
            and now.metadata_partitions == before.metadata_partitions
            and now.record_key_fields == before.record_key_fields
            and now.partition_fields == before.partition_fields
        )
        if not same:
            raise ConflictError(
                "Another writer changed the table's properties since this statement began",
                hint="Nothing was committed; run the statement again.",
                table=self._store.uri,
            )

    def _check_still_ours(self, metadata: CommitMetadata) -> None:
        """A Spark writer with default settings rolls back every pending instant that it sees."""
        assert self._instant is not None
        assert self._heartbeat is not None
        self._heartbeat.check_alive()
        wanted = [instant_path(self._config, self._instant), *(stat.path for stat in metadata.write_stats)]
        for path in wanted:
            if not self._store.exists(path):
                raise ConflictError(
                    f"{path} of the commit {self.instant} is gone: another writer rolled it back",
                    hint="Run the statement again; writers of one table need a common lock provider.",
                    table=self._store.uri,
                )

    def _check_conflicts(self, timeline: Timeline, footprint: Footprint) -> None:
        known = {(item.requested, item.completed) for item in self._seen.completed_writes}
        others = [
            OtherCommit(instant=item, metadata=read_commit(self._store, self._config, item))
            for item in timeline.completed_writes
            if (item.requested, item.completed) not in known
        ]
        check_conflicts(footprint, others, instant=self.instant, table=self._store.uri)
        for clustering, groups in pending_clustering_groups(self._store, self._config, timeline).items():
            check_pending_clustering(
                footprint.file_groups, groups, clustering=clustering, table=self._store.uri
            )

    def _complete(self, metadata: CommitMetadata) -> Instant:
        assert self._instant is not None
        payload = encode_commit_metadata(metadata)
        when = self._clock.next_instant()
        self._completing = True
        try:
            return complete(self._store, self._config, self._instant, when, payload)
        except StorageError as exc:
            return self._outcome(when, payload, exc)

    def _outcome(self, when: InstantTime, payload: bytes, exc: StorageError) -> Instant:
        """Find out whether a completion whose answer was lost took place."""
        assert self._instant is not None
        done = replace(
            self._instant,
            action=self._instant.action.when_completed,
            state=State.COMPLETED,
            completed=when,
            file_name="",
        )
        try:
            there = self._store.read(instant_path(self._config, done))
        except ObjectNotFoundError:
            # A request without an answer may still be on its way to a remote store; a disk has none on its way.
            is_certain = self._store.local_path("") is not None
            if not is_certain or isinstance(exc, (ObjectExistsError, TransientStorageError)):
                raise self._unknown(exc) from exc
            self._completing = False
            raise exc from None
        except StorageError as second:
            raise self._unknown(second) from exc
        if there == payload:
            return done
        raise self._unknown(exc) from exc

    def _unknown(self, exc: StorageError) -> CommitOutcomeUnknownError:
        return CommitOutcomeUnknownError(
            f"Whether instant {self.instant} was committed could not be found out: {exc.message}",
            hint=f"Look for a completed file of {self.instant} in {self._config.timeline_path}; "
            "without one, the next writer rolls the instant back.",
            table=self._store.uri,
            instant=self.instant,
        )

    def _delete_strays(self, metadata: CommitMetadata) -> None:
        """Delete files of failed attempts: they have markers and no write stat."""
        kept = {stat.path for stat in metadata.write_stats}
        for marker in read_markers(self._store, self.instant):
            if marker.path not in kept:
                self._store.delete(marker.path)

    def _clean_up(self) -> None:
        """Nothing here can undo the commit: what fails is left to the next writer."""
        try:
            delete_markers(self._store, self.instant)
        except HudiSqlError as exc:
            _log.warning("markers of %s were left behind: %s", self.instant, exc)
        if self._heartbeat is not None:
            try:
                self._heartbeat.stop(remove=True)
            except HudiSqlError as exc:
                _log.warning("heartbeat of %s was left behind: %s", self.instant, exc)
            self._heartbeat = None


def pending_clustering_groups(
    store: Store, config: TableConfig, timeline: Timeline
) -> dict[InstantTime, frozenset[FileGroup]]:
    """File groups that pending clusterings are going to replace, by the clustering's instant."""
    found = {}
    for instant in timeline.pending:
        if instant.action is not Action.CLUSTERING:
            continue
        path = instant_path(config, replace(instant, state=State.REQUESTED, file_name=""))
        try:
            plan = decode_payload(PayloadKind.REPLACE_REQUESTED, store.read(path), path)
        except ObjectNotFoundError:
            continue  # rolled back, or completed, since the timeline was read
        groups = (plan.get("clusteringPlan") or {}).get("inputGroups") or ()
        found[instant.requested] = frozenset(
            (PartitionPath(piece["partitionPath"]), FileId(piece["fileId"]))
            for group in groups
            for piece in group.get("slices") or ()
        )
    return found
