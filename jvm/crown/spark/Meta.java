package crown.spark;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.StructType;

/**
 * The committed state. Chunks [firstChunk, firstLogChunk) are the snapshot, and those up to
 * nextChunk the log after it. {@code rows} counts the changes and snapshot rows in all of them, for
 * comparison with the number of stored rows. {@code lenient} says that the log may contain
 * quarantined changes, and so must be replayed batch by batch.
 */
record Meta(
    long version,
    String token,
    long firstChunk,
    long nextChunk,
    long firstLogChunk,
    long rows,
    String fingerprint,
    boolean lenient) {
  static final StructType SCHEMA =
      new StructType()
          .add("version", "long")
          .add("token", "string")
          .add("first_chunk", "long")
          .add("next_chunk", "long")
          .add("first_log_chunk", "long")
          .add("rows", "long")
          .add("fingerprint", "string")
          .add("lenient", "boolean")
          // What a snapshot is made with, the query being unknown to it.
          .add("batch", "long")
          .add("stage", "string")
          .add("identity", "string")
          .add("inputs", "string")
          .add("plan", "string")
          .add("names", "string");

  // Below this many rows or chunks, a rewrite is not worth it.
  private static final long FEW_ROWS = 65536;
  private static final long FEW_CHUNKS = 256;

  static Meta none(String fingerprint) {
    return new Meta(0, "", 0, 0, 0, 0, fingerprint, false);
  }

  static Meta of(Row row) {
    return new Meta(
        row.getLong(0),
        row.getString(1),
        row.getLong(2),
        row.getLong(3),
        row.getLong(4),
        row.getLong(5),
        row.getString(6),
        row.getBoolean(7));
  }

  Row toRow(long batch, Operator operator) {
    return RowFactory.create(
        version,
        token,
        firstChunk,
        nextChunk,
        firstLogChunk,
        rows,
        fingerprint,
        lenient,
        batch,
        operator.name,
        operator.identity,
        operator.inputs,
        operator.plan,
        operator.names);
  }

  /** The same under another fingerprint. */
  Meta of(String other) {
    return new Meta(version, token, firstChunk, nextChunk, firstLogChunk, rows, other, lenient);
  }

  Engines.Mark mark() {
    return new Engines.Mark(version, token);
  }

  /** With one more batch of changes in the log. */
  Meta after(String token, long changes, int chunks, boolean quarantine) {
    return new Meta(
        version + 1,
        token,
        firstChunk,
        nextChunk + chunks,
        firstLogChunk,
        rows + changes,
        fingerprint,
        lenient || quarantine);
  }

  /** With a snapshot in the place of all chunks. */
  Meta rewritten(long first, int chunks, long stored) {
    return new Meta(version, token, first, first + chunks, first + chunks, stored, fingerprint, false);
  }

  /** More than half of the chunks' rows are dead, or the log has too many small chunks. */
  boolean wasteful(long stored) {
    long snapshot = firstLogChunk - firstChunk;
    long log = nextChunk - firstLogChunk;
    return rows > Math.max(2 * stored, FEW_ROWS) || log > FEW_CHUNKS + 4 * (snapshot + rows / FEW_ROWS);
  }
}
