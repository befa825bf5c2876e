"""Unpack a table that Spark wrote, MERGE into it, and show what that did."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import hudi_sql

MERGE = """
MERGE INTO trips AS t
USING (VALUES
    ('t-002', 'bo',  9.50, 3000, 'lisbon'),   -- newer than the stored row: updated
    ('t-003', 'cem', 1.00,  500, 'ankara'),   -- older than the stored row: ignored (event-time ordering)
    ('t-006', NULL,  NULL, 3000, 'oslo'),     -- no rider: deleted
    ('t-007', 'gus', 4.00, 3000, 'bergen')    -- new, and the first in its partition
  ) AS s (trip_id, rider, fare, updated_at, city)
ON t.trip_id = s.trip_id
WHEN MATCHED AND s.rider IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
"""

ROWS = "SELECT trip_id, rider, fare, updated_at, city FROM trips ORDER BY trip_id"


def main() -> None:
    """Run the example in a fresh folder."""
    folder = Path(tempfile.mkdtemp(prefix="hudi-sql-quickstart-"))
    with zipfile.ZipFile(Path(__file__).with_name("trips.zip")) as archive:
        archive.extractall(folder)
    location = folder / "trips"

    session = hudi_sql.connect(engine="duckdb")
    session.sql(f"CREATE TABLE trips USING hudi LOCATION '{location}'")
    print("-- the table as Spark left it")
    session.sql(ROWS).show()

    print(MERGE)
    result = session.sql(MERGE)
    print("-- counts")
    result.show()

    print("-- the table now")
    session.sql(ROWS).show()

    print("-- its timeline")
    for instant in session.table("trips").snapshot().timeline.instants:
        print(f"{instant.requested}  {instant.action.value:8}  {instant.state.value}")

    print("-- its files (the latest of each file group)")
    for piece in session.table("trips").snapshot().slices(None):
        if piece.base_file is not None:
            print(f"{piece.base_file.size_bytes:8}  {piece.base_file.path}")
    print(f"-- all of it is in {location}")


if __name__ == "__main__":
    main()
