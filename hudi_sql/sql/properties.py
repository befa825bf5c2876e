"""TBLPROPERTIES and OPTIONS: Spark's short names and Hudi's full ones for one thing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_sql.config.key import check_known
from hudi_sql.config.write import known_setting_names
from hudi_sql.errors import ConfigError, UnsupportedTableError
from hudi_sql.storage.properties.kinds import MergeMode, TableType

__all__ = ["NormalisedProperties", "normalise_table_properties"]

_KEY_FIELDS = ("primaryKey", "hoodie.table.recordkey.fields", "hoodie.datasource.write.recordkey.field")
_ORDERING_FIELDS = (
    "orderingFields",
    "preCombineField",
    "hoodie.table.ordering.fields",
    "hoodie.table.precombine.field",
    "hoodie.datasource.write.precombine.field",
)
_TYPE = ("type", "hoodie.table.type", "hoodie.datasource.write.table.type")
_MERGE_MODE = ("hoodie.record.merge.mode", "hoodie.write.record.merge.mode", "mergeMode")
_PAYLOAD = ("payloadClass", "hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class")
_VERSION = "hoodie.write.table.version"
_GENERATOR = (
    "hoodie.datasource.write.keygenerator.class",
    "hoodie.datasource.write.keygenerator.type",
    "hoodie.table.keygenerator.class",
    "hoodie.table.keygenerator.type",
)
_INFERRED = re.compile(
    r"(org\.apache\.hudi\.keygen\.)?(simple|complex|nonpartitioned|non_partition)(avro)?(keygenerator)?",
    re.IGNORECASE,
)
"""Key generators that follow from the columns, whatever their name is: Spark infers them, too."""
_KEPT = (
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
    "hoodie.datasource.write.drop.partition.columns",
    "hoodie.table.cdc.enabled",
    "hoodie.table.cdc.supplemental.logging.mode",
    "hoodie.table.base.file.format",
    "hoodie.table.timeline.timezone",
    "hoodie.populate.meta.fields",
)
"""Stored in hoodie.properties as they are."""
_ACCEPTED = (
    "hoodie.index.type",
    "hoodie.record.index.update.partition.path",
    "hoodie.datasource.write.partitionpath.field",
    "hoodie.table.name",
    "hoodie.database.name",
    "hoodie.datasource.write.table.name",
)
"""Given by scripts; what they say is said elsewhere in the statement, or changes nothing here."""
_TYPES = {
    "cow": TableType.COPY_ON_WRITE,
    "mor": TableType.MERGE_ON_READ,
    "copy_on_write": TableType.COPY_ON_WRITE,
    "merge_on_read": TableType.MERGE_ON_READ,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalisedProperties:
    """What table properties amount to. Empty or None where nothing is said."""

    record_key_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    table_type: TableType | None = None
    merge_mode: MergeMode | None = None
    payload_class: str | None = None
    table_properties: Mapping[str, str] = field(default_factory=dict)
    """Stored with the table."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of writes through this name."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Not Hudi's."""


def normalise_table_properties(properties: Mapping[str, str]) -> NormalisedProperties:
    """Read table properties in any of their spellings.

    Raises:
        ConfigError: A `hoodie.*` name is unknown, or a value cannot be used.
        UnsupportedTableError: Another table version is asked for.
    """
    groups = (
        _KEY_FIELDS,
        _ORDERING_FIELDS,
        _TYPE,
        _MERGE_MODE,
        _PAYLOAD,
        _KEPT,
        _ACCEPTED,
        _GENERATOR,
        (_VERSION,),
    )
    known = {name for group in groups for name in group}
    check_known(properties, {*known, *known_setting_names()})
    spellings = {name.lower() for name in known}
    version = properties.get(_VERSION)
    if version is not None and version != "9":
        raise UnsupportedTableError(
            f"Tables of version {version} are not created",
            hint=f"Leave {_VERSION} out: new tables have version 9.",
            property=_VERSION,
            value=version,
        )
    generator = _first(properties, _GENERATOR)
    if generator is not None and not _INFERRED.fullmatch(generator):
        raise UnsupportedTableError(
            f"Tables with the key generator {generator} are not created",
            hint="Leave it out: it follows from the key and partition columns.",
            property=_GENERATOR[0],
            value=generator,
        )
    return NormalisedProperties(
        record_key_fields=_names(_first(properties, _KEY_FIELDS)),
        ordering_fields=_names(_first(properties, _ORDERING_FIELDS)),
        table_type=_table_type(_first(properties, _TYPE)),
        merge_mode=_merge_mode(_first(properties, _MERGE_MODE)),
        payload_class=_first(properties, _PAYLOAD),
        table_properties={key: value for key, value in properties.items() if key in _KEPT},
        settings={
            key: value
            for key, value in properties.items()
            if key.startswith("hoodie.") and key in known_setting_names() and key not in known
        },
        others={
            key: value
            for key, value in properties.items()
            if key.lower() not in spellings and not key.startswith("hoodie.")
        },
    )


def _first(properties: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    lowered = {key.lower(): value for key, value in properties.items()}
    return next((lowered[name.lower()] for name in names if name.lower() in lowered), None)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for part in (text or "").split(",") if (name := part.strip()))


def _table_type(text: str | None) -> TableType | None:
    if text is None:
        return None
    if text.lower() not in _TYPES:
        raise ConfigError(
            f"There is no table type {text!r}", hint="Use cow or mor.", setting="type", value=text
        )
    return _TYPES[text.lower()]


def _merge_mode(text: str | None) -> MergeMode | None:
    if text is None:
        return None
    try:
        return MergeMode(text.upper())
    except ValueError:
        raise ConfigError(
            f"There is no merge mode {text!r}",
            hint=f"Use {' or '.join(mode.value for mode in MergeMode)}.",
            setting=_MERGE_MODE[0],
            value=text,
        ) from None
