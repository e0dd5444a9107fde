package crown.spark;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataType;

/**
 * Blobs of deltas of {@link RealTimeProcessor} in, their rows out. Each row has the number of its
 * batch, the batch whose state the cell started from, the attempt, and its position in the attempt.
 *
 * <p>With several views, the first column is the number of the view. When a cell's batch ends, each
 * view that had no deltas from it gets a row that says so: the views may have separate consumers,
 * and each of them must see every attempt.
 */
public final class UnpackRealTime implements MapPartitionsFunction<Row, DeltaRow> {
  private final DataType[] columns;
  private final int views;

  /** {@code views} is the number of views, 0 for a single one without a number. */
  public UnpackRealTime(DataType[] columns, int views) {
    this.columns = columns;
    this.views = views;
  }

  @Override
  public Iterator<DeltaRow> call(Iterator<Row> deltas) {
    return new RealTimeDeltaRows(columns, views, deltas);
  }

  private static final class RealTimeDeltaRows extends DeltaRows {
    private final int views;
    private final Iterator<Row> deltas;
    private final long batch = Unpack.batch();
    /** The views that have had deltas, by cell. */
    private final Map<Integer, BitSet> shown = new HashMap<>();
    /** The views without deltas in the batch that has just ended. */
    private final BitSet silent = new BitSet();
    private BitSet ofCell;
    private Row from;
    private long position;

    RealTimeDeltaRows(DataType[] columns, int views, Iterator<Row> deltas) {
      super(columns, 4);
      this.views = views;
      this.deltas = deltas;
    }

    @Override
    long following() {
      while (silent.isEmpty()) {
        if (!deltas.hasNext()) {
          return 0;
        }
        from = deltas.next();
        position = Unpack.position(from.getInt(0)) + from.getLong(3);
        ofCell = shown.computeIfAbsent(from.getInt(0), cell -> new BitSet());
        if (!from.isNullAt(4)) {
          long opened = Native.deltas();
          read(opened, (byte[]) from.get(4));
          return opened;
        }
        silent.set(0, Math.max(views, 1));
        silent.andNot(ofCell);
      }
      return NOTHING;
    }

    @Override
    void number(DeltaRow row) {
      if (!silent.isEmpty()) {
        int view = silent.nextSetBit(0);
        silent.clear(view);
        row.silent(view);
      } else {
        ofCell.set(views == 0 ? 0 : row.view(0));
      }
      row.number(0, batch);
      row.number(1, from.getLong(1));
      row.number(2, from.getLong(2));
      row.number(3, position++);
    }
  }
}
