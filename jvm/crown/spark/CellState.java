package crown.spark;

import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.QueryInfo;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.ValueState;

/**
 * The committed state of the cell that Spark is working on: (version, token) and the chunks that lead to it.
 *
 * <p>A batch takes the engine at exactly that mark, or builds it from the chunks. At its end it
 * adds its changes to the chunks and writes a new mark (version + 1, new random token). If anything
 * fails before Spark commits, the state still names the old mark.
 */
final class CellState {
  private static final SecureRandom RANDOM = new SecureRandom();

  private final Operator operator;
  private final ValueState<Row> meta;
  private final MapState<Row, Row> chunks;

  CellState(Operator operator, StatefulProcessorHandle handle) {
    this.operator = operator;
    meta = handle.getValueState("meta", StateEncoder.of(Meta.SCHEMA), TTLConfig.NONE());
    chunks = handle.getMapState("chunks", StateEncoder.of(Chunk.KEY), StateEncoder.of(Chunk.SCHEMA), TTLConfig.NONE());
  }

  Engines.Key key(QueryInfo query, int cell) {
    return new Engines.Key(query.getQueryId(), operator.view, operator.name, cell);
  }

  Meta read() {
    if (!meta.exists()) {
      return Meta.none(operator.fingerprint);
    }
    Meta found = Meta.of(meta.get());
    if (!operator.accepts(found.fingerprint())) {
      throw new CrownException(
          "CROWN-STATE-OTHER-PLAN",
          String.format(
              "the checkpoint belongs to another query, or to another version of Crown%n"
                  + "why: its state has the fingerprint %s, this query's is %s:%n%s%n"
                  + "do:  use a new checkpoint for a changed query, schema, window or number of cells, and a new target"
                  + " (materialize(..., overwrite=True) replaces the old one); for the same query under a new version,"
                  + " start the stream from what maintain() returned",
              found.fingerprint(), operator.fingerprint, operator.sql));
    }
    return found.of(operator.fingerprint);
  }

  /** The last batch that changed the cell and was committed, -1 when there is none. */
  long lastBatch() {
    return meta.exists() ? meta.get().getLong(Meta.SCHEMA.fieldIndex("batch")) : -1;
  }

  /** The engine at a mark, cached or built from the chunks. The caller owns it. */
  long engine(Engines.Key key, Meta before) {
    long kept = Engines.take(key, before.mark());
    try {
      Engines.requireRoom(operator.memory);
    } catch (CrownException error) {
      if (kept != 0) {
        Engines.keep(key, before.mark(), kept); // freed when the query ends
      }
      throw error;
    }
    if (kept != 0) {
      return kept;
    }
    long engine = Native.open(operator.plan);
    try {
      rebuild(engine, before);
      return engine;
    } catch (RuntimeException | Error error) {
      Native.closeCell(engine);
      throw error;
    }
  }

  /**
   * Builds the engine from the chunks. Where order can't matter, the whole log is applied as one
   * batch, so that rows which were inserted and deleted cost next to nothing. Otherwise its batches
   * are replayed one by one, and the same changes are quarantined again.
   */
  private void rebuild(long engine, Meta before) {
    boolean ordered = !operator.ordered.isEmpty() || before.lenient();
    long version = -1;
    for (long index = before.firstChunk(); index < before.nextChunk(); index++) {
      Engines.requireRoom(operator.memory);
      Chunk chunk = readChunk(index);
      if (chunk.snapshot()) {
        Native.addPart(engine, chunk.data());
        continue;
      }
      if (ordered && version >= 0 && chunk.version() != version) {
        Native.replay(engine, before.lenient());
      }
      version = chunk.version();
      chunk.give(engine);
    }
    if (version >= 0) {
      Native.replay(engine, before.lenient());
    }
    Native.ready(engine);
  }

  private Chunk readChunk(long index) {
    Row found = chunks.getValue(RowFactory.create(index));
    Chunk chunk = found == null ? null : Chunk.of(found);
    if (chunk == null || !chunk.intact()) {
      throw new CrownException(
          "CROWN-STATE-CORRUPT",
          "state chunk "
              + index
              + (chunk == null ? " is missing" : " is corrupt\nwhy: its checksum does not match its bytes")
              + "\ndo:  restore the checkpoint from a copy, or start over with a new one");
    }
    return chunk;
  }

  /**
   * Writes the state after a batch.
   *
   * @param changes the changes of the batch, which a snapshot includes already
   * @param lenient whether some of the changes may have been quarantined
   */
  Meta write(Meta before, long batch, long engine, Supplier<List<Chunk.Blob>> changes, long[] report, boolean lenient) {
    String token = String.format("%016x", RANDOM.nextLong());
    long stored = report[Native.STORED];
    Meta after = before.after(token, report[Native.UPDATES], 0, lenient);
    List<Chunk> log = after.wasteful(stored) ? List.of() : Chunk.log(after.version(), changes.get());
    after = before.after(token, report[Native.UPDATES], log.size(), lenient);
    if (after.wasteful(stored)) {
      after = rewrite(before, after, engine, stored);
    } else {
      append(before.nextChunk(), log);
    }
    meta.update(after.toRow(batch, operator));
    return after;
  }

  /** Replaces all chunks by a snapshot that already includes this batch. */
  private Meta rewrite(Meta before, Meta after, long engine, long stored) {
    for (long index = before.firstChunk(); index < before.nextChunk(); index++) {
      chunks.removeKey(RowFactory.create(index));
    }
    List<Chunk> snapshot = new ArrayList<>();
    for (byte[] part : Native.save(engine)) {
      snapshot.add(Chunk.of(after.version(), true, part));
    }
    append(before.nextChunk(), snapshot);
    return after.rewritten(before.nextChunk(), snapshot.size(), stored);
  }

  private void append(long index, List<Chunk> added) {
    for (Chunk chunk : added) {
      chunks.updateValue(RowFactory.create(index++), chunk.toRow());
    }
  }
}
