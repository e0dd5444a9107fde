package crown.spark;

import java.util.Iterator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataType;

/**
 * Blobs of deltas of {@link LiveProcessor} in, their rows out. Each row has the number of its
 * batch, the batch whose state the cell started from, the attempt, and its position in the attempt.
 */
public final class UnpackLive implements MapPartitionsFunction<Row, DeltaRow> {
  private final DataType[] columns;

  public UnpackLive(DataType[] columns) {
    this.columns = columns;
  }

  @Override
  public Iterator<DeltaRow> call(Iterator<Row> deltas) {
    return new LiveDeltaRows(columns, deltas);
  }

  private static final class LiveDeltaRows extends DeltaRows {
    private final Iterator<Row> deltas;
    private final long batch = Unpack.batch();
    private Row from;
    private long position;

    LiveDeltaRows(DataType[] columns, Iterator<Row> deltas) {
      super(columns, 4);
      this.deltas = deltas;
    }

    @Override
    long following() {
      if (!deltas.hasNext()) {
        return 0;
      }
      from = deltas.next();
      position = Unpack.position(from.getInt(0)) + from.getLong(3);
      if (from.isNullAt(4)) {
        return NOTHING;
      }
      long opened = Native.deltas();
      read(opened, (byte[]) from.get(4));
      return opened;
    }

    @Override
    void number(DeltaRow row) {
      row.number(0, batch);
      row.number(1, from.getLong(1));
      row.number(2, from.getLong(2));
      row.number(3, position++);
    }
  }
}
