"""The description of a change: the change types of Delta's change feed, their sign, and the columns that hold them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

INSERT: Final = "insert"
DELETE: Final = "delete"
UPDATE_PREIMAGE: Final = "update_preimage"
UPDATE_POSTIMAGE: Final = "update_postimage"

# The sign of a row's weight by change type.
SIGN: dict[str, Literal[1, -1]] = {INSERT: 1, UPDATE_POSTIMAGE: 1, DELETE: -1, UPDATE_PREIMAGE: -1}
INSERTIONS = tuple(word for word, sign in SIGN.items() if sign > 0)
DELETIONS = tuple(word for word, sign in SIGN.items() if sign < 0)

NetWord: TypeAlias = Literal["insert", "delete"]  # the change types of a delta, which is net

CHANGE_TYPE = "_change_type"
MULTIPLICITY = "_multiplicity"  # the number of copies
# Where requested: the number of the batch that a change belongs to, and a number that no other
# change of it has.
BATCH = "_batch"
POSITION = "_position"
# In Spark's real-time mode: the batch whose state the change's batch began with, and the attempt at
# that batch.
AFTER = "_after"
ATTEMPT = "_attempt"
# The commit that Delta's change feed names beside a change.
COMMIT_COLUMNS = frozenset({"_commit_version", "_commit_timestamp"})
