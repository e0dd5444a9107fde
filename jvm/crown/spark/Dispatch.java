package crown.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataType;

/**
 * Rows of changes in, packed blobs out.
 *
 * <p>A row has the table's columns, followed by those that {@code extras} names: "deleted" (null
 * for an unknown change type), "cell", "corrupt" (the text of a record that did not parse,
 * otherwise null) and "reason" (why it did not). With {@code rejects}, malformed changes are
 * written there and each change carries its position; without, they are an error. A {@code realTime}
 * dispatch sends each row as soon as it arrives.
 */
public final class Dispatch implements MapPartitionsFunction<Row, Row> {
  private static final int BLOCK_ROWS = 16384;
  private static final int BLOCK_BYTES = 4 << 20;

  private final String table;
  private final int[] keys;
  private final String spec;
  private final String[] names;
  private final DataType[] types;
  private final int deleted;
  private final int cell;
  private final int corrupt;
  private final int reason;
  private final Rejects rejects;
  private final boolean realTime;
  private final int blockRows;

  public Dispatch(
      String table,
      int[] keys,
      String spec,
      String[] names,
      DataType[] types,
      String[] extras,
      Rejects rejects,
      boolean realTime) {
    this.realTime = realTime;
    this.blockRows = realTime ? 1 : BLOCK_ROWS;
    this.table = table;
    this.keys = keys;
    this.spec = spec;
    this.names = names;
    this.types = types;
    this.deleted = place(extras, "deleted");
    this.cell = place(extras, "cell");
    this.corrupt = place(extras, "corrupt");
    this.reason = place(extras, "reason");
    this.rejects = rejects;
  }

  private int place(String[] extras, String name) {
    int found = java.util.Arrays.asList(extras).indexOf(name);
    return found < 0 ? -1 : types.length + found;
  }

  @Override
  public Iterator<Row> call(Iterator<Row> rows) {
    return new PackedRows(rows);
  }

  private final class PackedRows extends Packing {
    private final Iterator<Row> rows;
    private final ColumnWriter[] columns = new ColumnWriter[types.length];
    private final ByteBuffer positions = rejects == null ? null : ColumnWriter.direct(8 * blockRows);
    private final ByteBuffer deletions = deleted < 0 ? null : ColumnWriter.direct(blockRows);
    private final ByteBuffer cells = cell < 0 ? null : ColumnWriter.direct(4 * blockRows);
    private final StringBuilder faults = new StringBuilder();
    private long read;

    PackedRows(Iterator<Row> rows) {
      super(table, keys, spec, realTime);
      this.rows = rows;
      for (int i = 0; i < columns.length; i++) {
        columns[i] = ColumnWriter.of(types[i], blockRows);
      }
    }

    @Override
    boolean give(long dispatcher) {
      int count = 0;
      for (ColumnWriter column : columns) {
        column.clear();
      }
      while (count < blockRows && rows.hasNext() && !heavy()) {
        Row row = rows.next();
        long position = (source << Rejects.PARTITION_SHIFT) + read++;
        if (!wellFormed(row, position)) {
          continue;
        }
        for (int i = 0; i < columns.length; i++) {
          columns[i].put(row, i, count);
        }
        if (positions != null) {
          positions.putLong(8 * count, position);
        }
        if (deletions != null) {
          deletions.put(count, (byte) (row.getBoolean(deleted) ? 1 : 0));
        }
        if (cells != null) {
          cells.putInt(4 * count, row.getInt(cell));
        }
        count++;
      }
      if (count > 0) {
        Native.addRows(dispatcher, count, buffers());
      }
      return count > 0 || rows.hasNext();
    }

    /** Whether strings or nested values have filled the block before it has enough rows. */
    private boolean heavy() {
      for (ColumnWriter column : columns) {
        if (column.grows && column.unbounded() > BLOCK_BYTES) {
          return true;
        }
      }
      return false;
    }

    private ByteBuffer[] buffers() {
      List<ByteBuffer> buffers = new ArrayList<>();
      for (ColumnWriter column : columns) {
        column.fill(buffers);
      }
      if (positions != null) {
        buffers.add(null);
        buffers.add(positions);
        buffers.add(null);
      }
      buffers.add(deletions);
      buffers.add(cells);
      return buffers.toArray(new ByteBuffer[0]);
    }

    private boolean wellFormed(Row row, long position) {
      if (corrupt >= 0 && !row.isNullAt(corrupt)) {
        String why = reason < 0 ? "the record does not match the schema of the table" : row.getString(reason);
        fault(row.getString(corrupt), why, position);
        return false;
      }
      if (deleted >= 0 && row.isNullAt(deleted)) {
        String words = "insert, update_postimage, delete, update_preimage";
        fault(shown(row), "_change_type must be one of " + words, position);
        return false;
      }
      return true;
    }

    private String shown(Row row) {
      StringBuilder text = new StringBuilder("{");
      for (int i = 0; i < names.length; i++) {
        text.append(i == 0 ? "" : ", ").append(names[i]).append(": ").append(row.get(i));
      }
      return text.append('}').toString();
    }

    private void fault(String text, String reason, long position) {
      if (rejects == null) {
        throw new CrownException(
            "CROWN-CHANGE-MALFORMED",
            String.format(
                "record %d of partition %d is malformed: %s\nwhy: %s\ndo:  %s",
                Rejects.row(position),
                source,
                text,
                reason,
                "correct the source, or use on_invalid=\"quarantine\""));
      }
      faults.append(Rejects.line(batch(), origin(), table, position, reason, text)).append('\n');
    }

    @Override
    void finished() {
      if (faults.length() > 0) {
        rejects.write(property("sql.streaming.queryId", ""), batch(), origin(), faults.toString());
      }
    }

    private String origin() {
      return table + "-" + source;
    }

    private long batch() {
      return Long.parseLong(property("streaming.sql.batchId", "0"));
    }

    private static String property(String name, String otherwise) {
      String found = TaskContext.get().getLocalProperty(name);
      return found == null ? otherwise : found;
    }
  }
}
