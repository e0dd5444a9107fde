package crown.spark;

import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.TreeMap;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Blobs of deltas in, their rows out. {@code types} are those of the deltas' columns.
 *
 * <p>With {@code numbered}, each row also has the number of the batch and its position there. A batch that Spark runs again gives
 * the same deltas, but an engine that was rebuilt may list them in another order; so each cell's are sorted by value.
 */
public final class Unpack implements MapPartitionsFunction<Row, Row> {
  private static final int CELL = CellProcessor.DELTAS.fieldIndex("cell");
  private static final int BLOB = CellProcessor.DELTAS.fieldIndex("blob");
  /** A position is the number of the cell and that of the row among the cell's, in one number. */
  private static final int CELL_SHIFT = 40;

  private final String[] types;
  private final boolean numbered;

  public Unpack(String[] types, boolean numbered) {
    this.types = types;
    this.numbered = numbered;
  }

  /** The position of a cell's first delta. */
  static long position(int cell) {
    return (long) cell << CELL_SHIFT;
  }

  /** The number of the batch that the running task belongs to. */
  static long batch() {
    TaskContext context = TaskContext.get();
    String found = context == null ? null : context.getLocalProperty("streaming.sql.batchId");
    return found == null ? 0 : Long.parseLong(found);
  }

  @Override
  public Iterator<Row> call(Iterator<Row> deltas) {
    return numbered ? new Numbered(deltas) : new Rows(deltas);
  }

  private class Rows implements Iterator<Row> {
    final Iterator<Row> deltas;
    private final ColumnReader[] columns = new ColumnReader[types.length];
    private final int[] count = new int[1];
    private long open;
    private int row;

    Rows(Iterator<Row> deltas) {
      this.deltas = deltas;
      for (int i = 0; i < columns.length; i++) {
        columns[i] = ColumnReader.of(types[i]);
      }
      TaskContext context = TaskContext.get();
      if (context != null) {
        context.addTaskCompletionListener((TaskCompletionListener) done -> close());
      }
    }

    /** The handle of the next deltas, 0 when there are no more. */
    long following() {
      while (deltas.hasNext()) {
        Row from = deltas.next();
        if (!from.isNullAt(BLOB)) {
          long opened = Native.deltas();
          read(opened, (byte[]) from.get(BLOB));
          return opened;
        }
      }
      return 0;
    }

    /** Adds a blob to deltas that nobody holds yet. */
    final void read(long opened, byte[] blob) {
      try {
        Native.unpack(opened, blob);
      } catch (RuntimeException error) {
        Native.closeDeltas(opened);
        throw error;
      }
    }

    @Override
    public final boolean hasNext() {
      try {
        return found();
      } catch (CrownException error) {
        throw error.at("deltas");
      }
    }

    private boolean found() {
      while (row >= count[0]) {
        if (open == 0) {
          open = following();
          if (open == 0) {
            return false;
          }
        }
        ByteBuffer[] buffers = Native.nextDeltas(open, count);
        row = 0;
        if (buffers == null) {
          shut();
        } else {
          for (int i = 0; i < columns.length; i++) {
            columns[i].take(buffers, 3 * i);
          }
        }
      }
      return true;
    }

    @Override
    public final Row next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      Object[] values = new Object[columns.length + (numbered ? 2 : 0)];
      for (int i = 0; i < columns.length; i++) {
        values[i] = columns[i].get(row);
      }
      row++;
      number(values);
      return RowFactory.create(values);
    }

    void number(Object[] values) {}

    /** When the task ends, however it does. */
    void close() {
      shut();
    }

    private void shut() {
      count[0] = 0;
      row = 0;
      if (open != 0) {
        Native.closeDeltas(open);
        open = 0;
      }
    }
  }

  private final class Numbered extends Rows {
    private final Map<Integer, Long> cells = new TreeMap<>();
    private final long batch = batch();
    private boolean gathered;
    private long position;

    Numbered(Iterator<Row> deltas) {
      super(deltas);
    }

    @Override
    long following() {
      if (!gathered) {
        gather();
        gathered = true;
      }
      if (cells.isEmpty()) {
        return 0;
      }
      int cell = cells.keySet().iterator().next();
      Native.sort(cells.get(cell));
      position = position(cell);
      return cells.remove(cell);
    }

    private void gather() {
      while (deltas.hasNext()) {
        Row from = deltas.next();
        if (!from.isNullAt(BLOB)) {
          Native.unpack(cells.computeIfAbsent(from.getInt(CELL), cell -> Native.deltas()), (byte[]) from.get(BLOB));
        }
      }
    }

    @Override
    void number(Object[] values) {
      values[types.length] = batch;
      values[types.length + 1] = position++;
    }

    @Override
    void close() {
      super.close();
      cells.values().forEach(Native::closeDeltas);
      cells.clear();
    }
  }
}
