package crown.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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
import scala.jdk.javaapi.CollectionConverters;

/**
 * The stateful operator of real-time mode: a cell is called with each change as it arrives, and
 * sends its deltas immediately.
 *
 * <p>Spark commits the state when the batch ends, and sends no signal before that. So every task
 * that sends changes ends with a mark to each cell (see {@link Packing}). When a cell has the marks
 * of all tasks, it writes the batch to the state as {@link CellProcessor} does.
 */
public final class RealTimeProcessor extends StatefulProcessor<Row, Row, Row> {
  /**
   * {@code after} is the batch whose state the cell's batch began with, {@code sequence} the number
   * of the blob's first delta among those of the cell's batch. A row without a blob ends the cell's
   * batch.
   */
  static final StructType DELTAS =
      new StructType()
          .add("cell", "int", false)
          .add("after", "long", false)
          .add("attempt", "long", false)
          .add("sequence", "long", false)
          .add("blob", "binary", true);

  private static final int ROOM_CHECKED_EVERY = 1024;

  private final Operator operator;
  private transient CellState state;
  private transient Map<Integer, Batch> batches;

  public RealTimeProcessor(Operator operator) {
    this.operator = operator;
  }

  @Override
  public void init(OutputMode outputMode, TimeMode timeMode) {
    state = new CellState(operator, getHandle());
    batches = new HashMap<>();
  }

  @Override
  public scala.collection.Iterator<Row> handleInputRows(
      Row key, scala.collection.Iterator<Row> rows, TimerValues timers) {
    Batch batch = batches.computeIfAbsent(operator.cell(key.getInt(0)), Batch::new);
    List<Row> deltas = new ArrayList<>();
    List<Row> marks = new ArrayList<>();
    while (rows.hasNext()) {
      Row row = rows.next();
      if (row.getString(4).isEmpty()) {
        marks.add(row);
      } else {
        batch.guarded(() -> batch.change(row, deltas));
      }
    }
    marks.forEach(row -> batch.guarded(() -> batch.mark(row.getLong(3), deltas)));
    return CollectionConverters.asScala(deltas.iterator());
  }

  @Override
  public void close() {
    for (Batch batch : batches.values()) {
      if (!batch.ended) {
        throw new IllegalStateException("[CROWN-INTERNAL] " + operator.named(batch.cell) + ": the batch ended without its marks");
      }
    }
  }

  /** What one cell does in one batch. */
  private final class Batch {
    private final int cell;
    private final QueryInfo query = getHandle().getQueryInfo();
    private final Engines.Key key;
    // Batches and attempts at them follow each other, so a later one has a larger number.
    private final long attempt = System.currentTimeMillis();
    private final int[] rows = new int[1];
    private long engine;
    private Meta before;
    private long after;
    private long sequence;
    private long changes;
    private long marks;
    private boolean ended;

    Batch(int cell) {
      this.cell = cell;
      this.key = state.key(query, cell);
      TaskContext.get().addTaskCompletionListener((TaskCompletionListener) done -> abandon());
    }

    void guarded(Runnable work) {
      operator.guarded(cell, work, this::abandon);
    }

    void change(Row row, List<Row> deltas) {
      if (ended) {
        throw new CrownException("CROWN-INTERNAL", "a change came after the marks of all tasks");
      }
      if (engine == 0) {
        before = state.read();
        after = state.lastBatch();
        engine = state.engine(key, before);
        Native.beginRealTime(engine, query.getBatchId(), origin(), operator.quarantine);
      }
      if (++changes % ROOM_CHECKED_EVERY == 0) {
        Engines.requireRoom(operator.memory);
      }
      String table = row.getString(4);
      show(Native.change(engine, table, (byte[]) row.get(5), operator.ordered(table), rows), deltas);
    }

    void mark(long tasks, List<Row> deltas) {
      if (++marks < tasks) {
        return;
      }
      ended = true;
      if (engine == 0) {
        return;
      }
      show(Native.endRealTime(engine, rows), deltas);
      deltas.add(RowFactory.create(cell, after, attempt, sequence, null));
      String rejected = Native.realTimeRejected(engine);
      if (rejected != null) {
        operator.rejects.write(query.getQueryId().toString(), query.getBatchId(), origin(), rejected);
      }
      long[] report = Native.report(engine);
      Meta written = state.write(before, query.getBatchId(), engine, this::log, report, false);
      Engines.keep(key, written.mark(), engine);
      engine = 0;
    }

    private List<Chunk.Blob> log() {
      List<Chunk.Blob> blobs = new ArrayList<>();
      byte[][] parts = Native.realTimeLog(engine);
      for (int i = 0; i < parts.length; i += 2) {
        blobs.add(new Chunk.Blob(new String(parts[i], StandardCharsets.UTF_8), parts[i + 1]));
      }
      return blobs;
    }

    private void show(byte[] blob, List<Row> deltas) {
      if (blob != null) {
        deltas.add(RowFactory.create(cell, after, attempt, sequence, blob));
        sequence += rows[0];
      }
    }

    private String origin() {
      return operator.name + "-" + cell;
    }

    private void abandon() {
      if (engine != 0) {
        Native.closeCell(engine);
        engine = 0;
      }
    }
  }
}
