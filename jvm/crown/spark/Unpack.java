package crown.spark;

import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataType;

/**
 * Blobs of deltas in, their rows of {@code columns} out.
 *
 * <p>With {@code numbered}, each row also has the number of the batch and its position in the
 * batch. A batch that Spark runs again produces the same deltas, but a rebuilt engine may list them
 * in a different order, so the deltas of each cell are sorted by value.
 */
public final class Unpack implements MapPartitionsFunction<Row, DeltaRow> {
  private static final int CELL = CellProcessor.DELTAS.fieldIndex("cell");
  private static final int BLOB = CellProcessor.DELTAS.fieldIndex("blob");
  /** A position is the number of the cell and that of the row among the cell's, in one number. */
  private static final int CELL_SHIFT = 40;

  private final DataType[] columns;
  private final boolean numbered;

  public Unpack(DataType[] columns, boolean numbered) {
    this.columns = columns;
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
  public Iterator<DeltaRow> call(Iterator<Row> deltas) {
    return numbered ? new Numbered(columns, deltas) : new Plain(columns, deltas);
  }

  private static final class Plain extends DeltaRows {
    private final Iterator<Row> deltas;

    Plain(DataType[] columns, Iterator<Row> deltas) {
      super(columns, 0);
      this.deltas = deltas;
    }

    @Override
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

    @Override
    void number(DeltaRow row) {}
  }

  private static final class Numbered extends DeltaRows {
    private final Iterator<Row> deltas;
    private final Map<Integer, Long> cells = new TreeMap<>();
    private final long batch = batch();
    private boolean gathered;
    private long position;

    Numbered(DataType[] columns, Iterator<Row> deltas) {
      super(columns, 2);
      this.deltas = deltas;
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
    void number(DeltaRow row) {
      row.number(0, batch);
      row.number(1, position++);
    }

    @Override
    void close() {
      super.close();
      cells.values().forEach(Native::closeDeltas);
      cells.clear();
    }
  }
}
