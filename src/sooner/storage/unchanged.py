"""Whether the user's files are still what they were when they were registered."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from sooner.errors import CatalogError, MissingFile, SchemaChanged, SourceChanged
from sooner.storage.expand import is_remote, local_path
from sooner.storage.footers import arrow_schema, schema_text
from sooner.storage.records import DataFile

_ADVICE = "Register the table again with replace=True."


def check_unchanged(files: Sequence[DataFile]) -> None:
    """Compare size and time of change with the file system; raise if a file is not the same.

    Files on other file systems than the local one are taken on trust.
    """
    changed = []
    for file in files:
        if is_remote(file.path):
            continue
        try:
            status = os.stat(local_path(file.path))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise MissingFile(
                f"The registered file {file.path} is gone. Bring it back, or register the table "
                "again with replace=True."
            ) from error
        except OSError as error:
            raise CatalogError(f"Cannot look at {file.path}: {error.strerror}.") from error
        same_time = file.modified_ns is None or file.modified_ns == status.st_mtime_ns
        if status.st_size != file.bytes or not same_time:
            changed.append(file)
    if not changed:
        return
    for file in changed:
        differences = _schema_differences(file)
        if differences:
            raise SchemaChanged(
                f"{file.path} has other columns than when it was registered: "
                f"{'; '.join(differences)}. {_ADVICE}"
            )
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    shown = ", ".join(file.path for file in changed[:3])
    raise SourceChanged(f"Changed since they were registered: {shown}{more}. {_ADVICE}")


def _schema_differences(file: DataFile) -> list[str]:
    if file.schema is None:
        return []
    try:
        now_text = schema_text(arrow_schema(file.path))
    except CatalogError:  # No longer Parquet, or half written: changed, and no more to say.
        return []
    return compare_schemas(file.schema, now_text)


def compare_schemas(before: str, after: str) -> list[str]:
    """What changed between two texts of :func:`schema_text`, a phrase for each column.

    >>> compare_schemas('[["a", "int64"], ["b", "string"]]', '[["a", "double"]]')
    ["column 'a' was int64 and is double", "column 'b' is gone"]
    """
    old, new = dict(json.loads(before)), dict(json.loads(after))
    phrases = []
    for name, kind in old.items():
        if name not in new:
            phrases.append(f"column {name!r} is gone")
        elif new[name] != kind:
            phrases.append(f"column {name!r} was {kind} and is {new[name]}")
    phrases += [f"column {name!r} ({new[name]}) is new" for name in new if name not in old]
    if not phrases and list(old) != list(new):
        phrases.append("the columns are in another order")
    return phrases
