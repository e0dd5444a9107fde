package crown.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;

/**
 * Blobs of deltas of {@link LiveProcessor} in, their rows out, each with the number of its batch, the batch that the cell's state was
 * of before, the attempt, and its position in the attempt. A blob holds the deltas of one change, so all of them are read at once.
 */
public final class UnpackLive implements MapPartitionsFunction<Row, Row> {
  private final String[] types;

  public UnpackLive(String[] types) {
    this.types = types;
  }

  @Override
  public Iterator<Row> call(Iterator<Row> deltas) {
    return new Rows(deltas);
  }

  private final class Rows implements Iterator<Row> {
    private final Iterator<Row> deltas;
    private final ColumnReader[] columns = new ColumnReader[types.length];
    private final long batch;
    private Iterator<Row> read = Collections.emptyIterator();

    Rows(Iterator<Row> deltas) {
      this.deltas = deltas;
      for (int i = 0; i < columns.length; i++) {
        columns[i] = ColumnReader.of(types[i]);
      }
      batch = Unpack.batch();
    }

    @Override
    public boolean hasNext() {
      while (!read.hasNext() && deltas.hasNext()) {
        read = rows(deltas.next());
      }
      return read.hasNext();
    }

    @Override
    public Row next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      return read.next();
    }

    private Iterator<Row> rows(Row from) {
      long first = Unpack.position(from.getInt(0)) + from.getLong(3);
      if (from.isNullAt(4)) {
        return List.of(row(from, first, -1)).iterator();
      }
      List<Row> found = new ArrayList<>();
      int[] count = new int[1];
      long open = Native.deltas();
      try {
        Native.unpack(open, (byte[]) from.get(4));
        ByteBuffer[] buffers;
        while ((buffers = Native.nextDeltas(open, count)) != null) {
          for (int i = 0; i < columns.length; i++) {
            columns[i].take(buffers, 3 * i);
          }
          for (int row = 0; row < count[0]; row++) {
            found.add(row(from, first + found.size(), row));
          }
        }
      } catch (CrownException error) {
        throw error.at("deltas");
      } finally {
        Native.closeDeltas(open);
      }
      return found.iterator();
    }

    /** Row {@code row} of the columns, or what says that there are no deltas. */
    private Row row(Row from, long position, int row) {
      Object[] values = new Object[columns.length + 4];
      for (int i = 0; i < columns.length; i++) {
        values[i] = row >= 0 ? columns[i].get(row) : types[i].equals("change") ? "none" : null;
      }
      values[columns.length] = batch;
      values[columns.length + 1] = from.getLong(1);
      values[columns.length + 2] = from.getLong(2);
      values[columns.length + 3] = position;
      return RowFactory.create(values);
    }
  }
}
