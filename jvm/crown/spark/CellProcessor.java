package crown.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.QueryInfo;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.AbstractIterator;

/**
 * The stateful operator: one call per cell and batch, with Spark's commit as the only commit point (see {@link CellState}). An
 * engine whose batch fails is closed.
 */
public final class CellProcessor extends StatefulProcessor<Row, Row, Row> {
  static final StructType KEY = new StructType().add("cell", "int", false);

  /** One row per blob of deltas, and one without a blob that reports on the batch. */
  static final StructType DELTAS =
      new StructType()
          .add("cell", "int", false)
          .add("sequence", "long", false)
          .add("blob", "binary", true)
          .add("updates", "long", true)
          .add("deltas", "long", true)
          .add("rejected", "long", true)
          .add("rows", "long", true)
          .add("bytes", "long", true)
          .add("counter_changes_per_update", "double", true)
          .add("seconds", "double", true)
          .add("figures", "string", true);

  private final Operator operator;
  private transient CellState state;

  public CellProcessor(Operator operator) {
    this.operator = operator;
  }

  @Override
  public void init(OutputMode outputMode, TimeMode timeMode) {
    state = new CellState(operator, getHandle());
  }

  @Override
  public scala.collection.Iterator<Row> handleInputRows(
      Row key, scala.collection.Iterator<Row> rows, TimerValues timers) {
    Batch batch = new Batch(operator.cell(key.getInt(0)), arrived(rows));
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) done -> batch.abandon());
    batch.begin();
    return batch;
  }

  @Override
  public void close() {}

  private List<Chunk.Blob> arrived(scala.collection.Iterator<Row> rows) {
    List<Row> packed = new ArrayList<>();
    while (rows.hasNext()) {
      packed.add(rows.next());
    }
    packed.sort(
        Comparator.<Row>comparingInt(row -> operator.order(row.getString(4)))
            .thenComparing(row -> row.getBoolean(1))
            .thenComparingLong(row -> row.getLong(2))
            .thenComparingLong(row -> row.getLong(3)));
    return packed.stream().map(row -> new Chunk.Blob(row.getString(4), (byte[]) row.get(5))).toList();
  }

  /** A cell's batch: first its deltas; once all of them are read, its state and its report. */
  private final class Batch extends AbstractIterator<Row> {
    private final int cell;
    private final List<Chunk.Blob> blobs;
    private final long started = System.nanoTime();
    private final QueryInfo query = getHandle().getQueryInfo();
    private final Engines.Key key;
    private long engine;
    private Meta before;
    private long sequence;
    private Row following;

    Batch(int cell, List<Chunk.Blob> blobs) {
      this.cell = cell;
      this.blobs = blobs;
      this.key = state.key(query, cell);
    }

    void begin() {
      guarded(
          () -> {
            before = state.read();
            engine = state.engine(key, before);
            for (Chunk.Blob blob : blobs) {
              Native.addChanges(engine, blob.table(), blob.bytes(), 0, blob.bytes().length);
              Engines.requireRoom(operator.memory);
            }
            Native.apply(engine, operator.quarantine);
            // Before Spark commits a state whose engine does not fit.
            Engines.requireRoom(operator.memory);
          });
    }

    @Override
    public boolean hasNext() {
      if (following == null && engine != 0) {
        guarded(
            () -> {
              byte[] blob = Native.next(engine);
              following = blob == null ? complete() : deltas(blob);
            });
      }
      return following != null;
    }

    @Override
    public Row next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      Row row = following;
      following = null;
      return row;
    }

    /** Discards what is left of an unfinished batch. */
    void abandon() {
      if (engine != 0) {
        Native.closeCell(engine);
        engine = 0;
      }
    }

    private void guarded(Runnable work) {
      operator.guarded(cell, work, this::abandon);
    }

    /** Writes the state, keeps the engine under its new mark and reports. */
    private Row complete() {
      long[] report = Native.report(engine);
      String figures = operator.isWatched() ? Native.figures(engine) : null;
      String origin = operator.name + "-" + cell;
      String rejected = operator.quarantine ? Native.rejected(engine, query.getBatchId(), origin) : null;
      if (rejected != null) {
        operator.rejects.write(query.getQueryId().toString(), query.getBatchId(), origin, rejected);
      }
      Meta after = state.write(before, query.getBatchId(), engine, () -> blobs, report, operator.quarantine);
      Engines.keep(key, after.mark(), engine);
      engine = 0;
      return RowFactory.create(
          cell,
          sequence++,
          null,
          report[Native.UPDATES],
          report[Native.DELTAS],
          rejected == null ? 0L : rejected.lines().count(),
          report[Native.STORED],
          report[Native.BYTES],
          Double.longBitsToDouble(report[Native.COUNTER_CHANGES]),
          (System.nanoTime() - started) / 1e9,
          figures);
    }

    private Row deltas(byte[] blob) {
      return RowFactory.create(cell, sequence++, blob, null, null, null, null, null, null, null, null);
    }
  }
}
