"""Names of data files, file slices and file groups (base file notes §1, log format notes §1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NewType

from hudi_sql.storage.model.instant import InstantTime

__all__ = [
    "BaseFile",
    "FileId",
    "FileSlice",
    "LogFile",
    "PartitionPath",
    "RecordKey",
    "base_file_name",
    "log_file_name",
    "parse_file",
]

PartitionPath = NewType("PartitionPath", str)
"""Relative path of a partition's folder, without slashes at the ends; empty for a table without partitions."""
FileId = NewType("FileId", str)
RecordKey = NewType("RecordKey", str)

_BASE = re.compile(r"^([a-zA-Z0-9-]+)_([a-zA-Z0-9-]+)_([0-9]+)(\.[a-zA-Z0-9]+)$")
_LOG = re.compile(r"^\.([^._]+)_([^.]*)\.(?:log|archive)\.(\d+)(?:_(\d+-\d+-\d+)(\.cdc)?)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFile:
    """A base file of a file group, named by the instant that wrote it."""

    partition: PartitionPath
    name: str
    size_bytes: int
    file_id: FileId
    write_token: str
    instant: InstantTime

    @property
    def path(self) -> str:
        """Path relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A log file. From version 8 on `instant` is the requested time of its deltacommit."""

    partition: PartitionPath
    name: str
    size_bytes: int
    file_id: FileId
    write_token: str
    instant: InstantTime
    version: int
    is_cdc: bool

    @property
    def path(self) -> str:
        """Path relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name

    @property
    def merge_order(self) -> tuple[InstantTime, int, str]:
        """Logs of a slice are merged in this order (log format notes §5), not by completion time."""
        return self.instant, self.version, self.write_token


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """One version of a file group: at most one base file and the logs on top of it."""

    partition: PartitionPath
    file_id: FileId
    instant: InstantTime
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()


def parse_file(partition: PartitionPath, name: str, size_bytes: int) -> BaseFile | LogFile | None:
    """Parse the name of a data file; None when it is neither a base nor a log file of Hudi."""
    if match := _BASE.match(name):
        file_id, token, instant, _ = match.groups()
        return BaseFile(
            partition=partition,
            name=name,
            size_bytes=size_bytes,
            file_id=FileId(file_id),
            write_token=token,
            instant=InstantTime(instant),
        )
    if match := _LOG.match(name):
        file_id, instant, version, token, cdc = match.groups()
        return LogFile(
            partition=partition,
            name=name,
            size_bytes=size_bytes,
            file_id=FileId(file_id),
            write_token=token or "1-0-1",
            instant=InstantTime(instant),
            version=int(version),
            is_cdc=bool(cdc),
        )
    return None


def base_file_name(file_id: FileId, write_token: str, instant: InstantTime, extension: str) -> str:
    """Name of a base file; `extension` without the dot."""
    return f"{file_id}_{write_token}_{instant}.{extension}"


def log_file_name(file_id: FileId, write_token: str, instant: InstantTime, version: int) -> str:
    """Name of a log file in the form of versions 8 and 9."""
    return f".{file_id}_{instant}.log.{version}_{write_token}"
