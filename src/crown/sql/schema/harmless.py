"""Parts of CREATE, other than columns, types and keys, that do not change results. Everything else is rejected.

Rows arrive with all their values, so defaults, generated values and checks have been applied before; and where and how
a database stores a table does not matter. But a collation changes what is equal, a hidden column what `*` shows, and
LIKE or INHERITS which columns there are.
"""

from __future__ import annotations

from sqlglot import exp

from crown.sql.words import words

# Arguments of each node that the schema reads or may ignore.
PARTS: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(names)
    for kind, names in {
        exp.Create: words("this kind expression exists replace properties indexes no_schema_binding clustered"),
        exp.Drop: words("tables kind exists materialized"),
        exp.Schema: words("this expressions"),
        exp.Table: words("this db catalog"),
        exp.ColumnDef: words("this kind constraints exists position"),
        exp.DataType: words("this expressions nested nullable"),
        exp.PrimaryKey: words("this expressions options include"),
    }.items()
}

PROPERTIES = tuple(
    getattr(exp, name)
    for name in words(
        "Property FileFormatProperty LocationProperty SchemaCommentProperty EngineProperty PartitionedByProperty "
        "PartitionByRangeProperty PartitionByListProperty ClusteredByProperty ClusterProperty DistributedByProperty "
        "DistKeyProperty DistStyleProperty SortKeyProperty AutoIncrementProperty CharacterSetProperty "
        "RowFormatProperty RowFormatDelimitedProperty RowFormatSerdeProperty SerdeProperties "
        "StorageHandlerProperty SettingsProperty TemporaryProperty TransientProperty ExternalProperty VolatileProperty "
        "UnloggedProperty StrictProperty "
        "MaterializedProperty IcebergProperty TableSpaceProperty SecureProperty SqlSecurityProperty DefinerProperty "
        "AlgorithmProperty CopyGrantsProperty BackupProperty EncodeProperty StorageProperty DuplicateKeyProperty "
        "GlobalProperty HeapProperty WithSchemaBindingProperty ViewAttributeProperty OptionsProperty Order"
    )
    if hasattr(exp, name)
)

CONSTRAINTS = tuple(
    getattr(exp, name)
    for name in words(
        "PrimaryKeyColumnConstraint NotNullColumnConstraint AutoIncrementColumnConstraint CheckColumnConstraint "
        "ClusteredColumnConstraint NonClusteredColumnConstraint CommentColumnConstraint CompressColumnConstraint "
        "ComputedColumnConstraint DefaultColumnConstraint EncodeColumnConstraint CharacterSetColumnConstraint "
        "GeneratedAsIdentityColumnConstraint OnUpdateColumnConstraint TitleColumnConstraint UniqueColumnConstraint "
        "DateFormatColumnConstraint NotForReplicationColumnConstraint Reference Properties "
        "DistKeyProperty SortKeyProperty"
    )
    if hasattr(exp, name)
)

# Items of a table's list beside columns and keys.
ITEMS = (exp.ForeignKey, exp.CheckColumnConstraint, exp.UniqueColumnConstraint, exp.IndexColumnConstraint, exp.Index)
