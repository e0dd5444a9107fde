package crown.spark;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.StructType;

/**
 * Packed blobs as rows of {@link #PACKED}, while the rows of a task's partition are given to a native dispatcher.
 *
 * <p>The dispatcher is closed when the last blob is taken, or when the task ends without that.
 *
 * <p>A {@code realTime} dispatcher packs each row immediately, and ends with a mark to each cell: a row
 * without a table, whose sequence is the number of tasks that send such marks.
 */
abstract class Packing implements Iterator<Row> {
  /** One row per blob. Blobs of one cell are applied in the order of (table, deletes, source, sequence). */
  static final StructType PACKED =
      new StructType()
          .add("cell", "int", false)
          .add("deletes", "boolean", false)
          .add("source", "long", false)
          .add("sequence", "long", false)
          .add("table", "string", false)
          .add("blob", "binary", false);

  final long source;
  private final String table;
  private final int[] keys;
  private final boolean realTime;
  private final int[] place = new int[2];
  private int marks;
  private long dispatcher;
  private boolean finished;
  private long sequence;
  private Row following;

  Packing(String table, int[] keys, String spec, boolean realTime) {
    this.realTime = realTime;
    this.table = table;
    this.keys = keys;
    TaskContext context = TaskContext.get();
    source = context == null ? 0 : context.partitionId();
    dispatcher = Native.dispatcher(spec);
    if (context != null) {
      context.addTaskCompletionListener((TaskCompletionListener) done -> close());
    }
  }

  /** Passes more of the partition to the dispatcher; false if there is no more. */
  abstract boolean give(long dispatcher);

  /** Called once, after the last row. */
  void finished() {}

  @Override
  public boolean hasNext() {
    try {
      return found();
    } catch (CrownException error) {
      throw error.at("table " + table);
    }
  }

  private boolean found() {
    while (following == null && dispatcher != 0) {
      byte[] blob = Native.packed(dispatcher, place);
      if (blob != null) {
        following = RowFactory.create(keys[place[0]], place[1] != 0, source, sequence++, table, blob);
      } else if (finished && realTime && marks < keys.length) {
        long tasks = TaskContext.get().numPartitions();
        following = RowFactory.create(keys[marks++], false, source, tasks, "", new byte[0]);
      } else if (finished) {
        close();
      } else if (give(dispatcher)) {
        if (realTime) {
          Native.finish(dispatcher);
        }
      } else {
        Native.finish(dispatcher);
        finished();
        finished = true;
      }
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

  private void close() {
    if (dispatcher != 0) {
      Native.closeDispatcher(dispatcher);
      dispatcher = 0;
    }
  }
}
