"""Record keys and partition paths of a table's rows (key generator notes)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import ConstraintError, NullKeyError, SchemaError, UnsupportedTableError
from hudi_sql.storage.key_generator.escaping import DEFAULT_PARTITION, escape_path_values
from hudi_sql.storage.key_generator.partition_values import parse_value, split_path
from hudi_sql.storage.properties.kinds import KeyGeneratorType
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.schema.java_text import java_text

__all__ = ["KeyGenerator"]

_NULL_PART = "__null__"
_EMPTY_PART = "__empty__"
_WRITABLE = frozenset(
    {
        KeyGeneratorType.SIMPLE,
        KeyGeneratorType.COMPLEX,
        KeyGeneratorType.NON_PARTITION,
        KeyGeneratorType.AUTO_RECORD,
    }
)
_FIRST_VERSION_WITH_FIXED_ENCODING = 9
_CONSISTENT_TIMESTAMPS = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
# A colon before the first slash is the end of a scheme to Hadoop's paths: Spark can neither write nor read that.
_BAD_PATH = r"(^|/)\.{1,2}(/|$)|//|^/|/$|^\.hoodie(/|$)|^[^/]*:"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGenerator:
    """Makes the key and the partition path of each row, column-wise, as the table's own generator does."""

    kind: KeyGeneratorType
    record_key_fields: tuple[str, ...]
    """Dotted paths; empty when keys are generated."""
    partition_fields: tuple[str, ...]
    partition_kinds: tuple[pa.DataType, ...]
    has_plain_partitions: bool
    """Whether path segments are the texts of the columns, not formatted from them."""
    is_prefixed: bool
    """Whether keys are `field:value`, also with one field."""
    needs_stored_key: bool
    """Whether one stored key must be looked at before the first key is made: releases differ in `is_prefixed`."""
    hive_style: bool
    url_encode: bool
    refusal: tuple[str, str, str] | None = None
    """Property, value and reason why no row can be written."""

    @classmethod
    def for_table(
        cls, config: TableConfig, schema: pa.Schema, *, stored_key: str | None = None
    ) -> KeyGenerator:
        """Take the generator's settings from the table.

        Args:
            config: Settings of the table.
            schema: Its schema, meta columns or not.
            stored_key: A record key that the table holds, for tables that need it (`needs_stored_key`).

        Raises:
            SchemaError: A key or partition column is not in the schema.
        """
        kind = config.key_generator
        keys = config.record_key_fields
        is_prefixed = len(keys) > 1 or kind in (KeyGeneratorType.COMPLEX, KeyGeneratorType.GLOBAL_DELETE)
        is_open = (
            kind is KeyGeneratorType.COMPLEX
            and len(keys) == 1
            and config.version < _FIRST_VERSION_WITH_FIXED_ENCODING
        )
        if is_open and stored_key is not None:
            is_prefixed = stored_key.startswith(f"{keys[0]}:")
        kinds = tuple(_type_of(schema, field) for field in config.partition_fields)
        is_custom = kind is KeyGeneratorType.CUSTOM
        return cls(
            kind=kind,
            record_key_fields=keys,
            partition_fields=() if kind is KeyGeneratorType.NON_PARTITION else config.partition_fields,
            partition_kinds=kinds,
            has_plain_partitions=kind in _WRITABLE
            or (is_custom and all(part == "SIMPLE" for part in config.partition_types)),
            is_prefixed=is_prefixed,
            needs_stored_key=is_open and stored_key is None,
            hive_style=config.hive_style_partitioning,
            url_encode=config.url_encode_partitions,
            refusal=_refusal(config, [_type_of(schema, field) for field in keys]),
        )

    @property
    def is_auto(self) -> bool:
        """Whether the table has no key columns: the writer makes keys up."""
        return not self.record_key_fields

    def check_writable(self) -> None:
        """Refuse tables whose keys or paths are not made here.

        Raises:
            UnsupportedTableError: Names the property and its value.
        """
        if self.refusal is not None:
            name, value, reason = self.refusal
            raise UnsupportedTableError(
                f"The table cannot be written: {reason}",
                property=name,
                value=value,
                hint="Write it with Hudi on Spark; reading works.",
            )

    def record_keys(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Make the record key of each row.

        Raises:
            NullKeyError: A key is NULL or empty, or all its parts are.
            UnsupportedTableError: The table's generator is not known here, or a stored key is needed to know it.
        """
        self.check_writable()
        assert self.record_key_fields, "generated keys are made by the writer"
        if self.needs_stored_key:
            raise UnsupportedTableError(
                "Releases of Hudi differ in the keys of this table, and no stored key was looked at",
                property="hoodie.table.keygenerator.type",
                value=self.kind.value,
                hint="Take the generator of the table's snapshot.",
            )
        columns = [_column(batch, field) for field in self.record_key_fields]
        texts = [java_text(column) for column in columns]
        if not self.is_prefixed:
            self._check_single(texts[0])
            return texts[0]
        missing = [pc.or_kleene(pc.is_null(text), pc.equal(text, "")) for text in texts]
        all_missing = missing[0]
        for more in missing[1:]:
            all_missing = pc.and_(all_missing, more)
        if pc.any(all_missing).as_py():
            fields = ", ".join(self.record_key_fields)
            raise NullKeyError(
                f"All parts of a record key ({fields}) are NULL or empty", hint="A key needs a value."
            )
        parts = [
            pc.binary_join_element_wise(f"{field}:", _placeholder(text), "")
            for field, text in zip(self.record_key_fields, texts, strict=True)
        ]
        return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ",")

    def partition_paths(self, batch: pa.RecordBatch) -> pa.DictionaryArray | pa.StringArray:
        """Make the partition path of each row.

        Raises:
            ConstraintError: A value cannot be a folder of the table.
            UnsupportedTableError: The table's generator is not known here.
        """
        self.check_writable()
        if not self.partition_fields:
            return pa.repeat(pa.scalar("", pa.string()), batch.num_rows)
        segments = [self._segments(_column(batch, field), field) for field in self.partition_fields]
        paths = segments[0] if len(segments) == 1 else pc.binary_join_element_wise(*segments, "/")
        paths = pc.dictionary_encode(paths)
        bad = pc.match_substring_regex(paths.dictionary, _BAD_PATH)
        if pc.any(bad).as_py():
            path = paths.dictionary.filter(bad)[0].as_py()
            raise ConstraintError(
                f"The partition value {path!r} cannot be a folder of the table",
                hint="Leave out colons, slashes at the ends and dots, or create the table with "
                "hoodie.datasource.write.partitionpath.urlencode=true.",
            )
        return paths

    def partition_values(self, path: str) -> dict[str, pa.Scalar]:
        """Values that the partition columns certainly have in every row of a partition.

        Columns are absent where the path does not tell: formatted partitions, foreign folders, timestamps cut to
        seconds.

        Example:
            With partition fields `day` (DATE), `country` (STRING) in hive style,
            `day=2026-03-01/country=us` gives both.
        """
        return self._values(path, exact=True)

    def filled_values(self, path: str) -> dict[str, pa.Scalar]:
        """Values to read where files do not hold the partition columns (`drop.partition.columns`)."""
        return self._values(path, exact=False)

    def _values(self, path: str, *, exact: bool) -> dict[str, pa.Scalar]:
        if not self.has_plain_partitions:
            return {}
        texts = split_path(path, self.partition_fields, hive_style=self.hive_style)
        if texts is None:
            return {}
        values = {}
        for field, kind, text in zip(self.partition_fields, self.partition_kinds, texts, strict=True):
            value = parse_value(text, kind, is_encoded=self.url_encode, exact=exact)
            if value is not None:
                values[field] = value
        return values

    def _check_single(self, text: pa.StringArray) -> None:
        field = self.record_key_fields[0]
        if text.null_count:
            raise NullKeyError(f"A record key ({field}) is NULL", hint="A key needs a value.")
        if pc.any(pc.equal(pc.binary_length(text), 0)).as_py():
            raise NullKeyError(f"A record key ({field}) is empty", hint="A key needs a value.")

    def _segments(self, column: pa.Array, field: str) -> pa.Array:
        """Path segments of one column; the work is done once for each distinct value."""
        values = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        distinct = values.dictionary
        if pa.types.is_timestamp(distinct.type):
            # Spark SQL writes timestamps so, and escapes them whatever the table says.
            seconds = pc.floor_temporal(distinct, unit="second").cast(pa.timestamp("s"))
            text = pc.strftime(seconds, "%Y-%m-%d %H:%M:%S")
            text = escape_path_values(text)
        else:
            text = java_text(distinct)
            if self.url_encode:
                text = escape_path_values(text)
            else:
                self._refuse_misread(text, field)
        text = pc.if_else(pc.equal(text, ""), DEFAULT_PARTITION, text)
        prefix = f"{field}=" if self.hive_style else ""
        rows = pc.fill_null(text.take(values.indices), DEFAULT_PARTITION)
        return pc.binary_join_element_wise(prefix, rows, "") if prefix else rows

    def _refuse_misread(self, text: pa.Array, field: str) -> None:
        """Refuse values that Spark would read back otherwise: it takes them from the path, escapes undone."""
        # Without hive style Spark cuts a value at its =, too; such folders are allowed as Spark makes them itself.
        signs = ["%[0-9A-Fa-f]{2}"]
        if len(self.partition_fields) > 1:
            signs.append("/")
        found = pc.match_substring_regex(text, "|".join(signs))
        if pc.any(found).as_py():
            value = text.filter(found)[0].as_py()
            raise ConstraintError(
                f"Partition column {field} has the value {value!r}, which Spark could not read back from its path",
                hint="Leave out slashes and escapes like %20, or create the table with "
                "hoodie.datasource.write.partitionpath.urlencode=true.",
                column=field,
            )


def _type_of(schema: pa.Schema, path: str) -> pa.DataType:
    first, *rest = path.split(".")
    index = schema.get_field_index(first)
    kind = schema.field(index).type if index >= 0 else None
    for name in rest:
        inner = kind.get_field_index(name) if kind is not None and pa.types.is_struct(kind) else -1
        kind = kind.field(inner).type if kind is not None and inner >= 0 else None
    if kind is None:
        raise SchemaError(
            f"The table's key or partition column {path} is not in its schema",
            hint=f"Columns: {', '.join(schema.names)}.",
            column=path,
        )
    return kind


def _column(batch: pa.RecordBatch, path: str) -> pa.Array:
    first, *rest = path.split(".")
    column = batch.column(first)
    for name in rest:
        column = pc.struct_field(column, name)
    return column


def _placeholder(text: pa.Array) -> pa.Array:
    return pc.fill_null(pc.if_else(pc.equal(text, ""), _EMPTY_PART, text), _NULL_PART)


def _refusal(config: TableConfig, kinds: list[pa.DataType]) -> tuple[str, str, str] | None:
    if config.key_generator not in _WRITABLE:
        if config.key_generator is KeyGeneratorType.USER_PROVIDED:
            name, value = "hoodie.table.keygenerator.class", config.key_generator_class or ""
        else:
            name, value = "hoodie.table.keygenerator.type", config.key_generator.value
        return name, value, f"its keys are made by {value}"
    for field, kind in zip(config.record_key_fields, kinds, strict=True):
        if pa.types.is_floating(kind):
            # 0.0 and -0.0 are equal and have two key texts; releases of Java differ in the text of some values.
            return "hoodie.table.recordkey.fields", field, f"its key column {field} is floating-point"
        if pa.types.is_nested(kind):
            return "hoodie.table.recordkey.fields", field, f"its key column {field} is nested"
        if pa.types.is_timestamp(kind) and config.raw.get(_CONSISTENT_TIMESTAMPS, "").lower() == "true":
            return _CONSISTENT_TIMESTAMPS, "true", "its timestamp keys are texts in the zone of a JVM"
    return None
