package crown.spark;

import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.util.TaskCompletionListener;

/** The rows of blobs of deltas, one after the other. */
abstract class DeltaRows implements Iterator<DeltaRow> {
  /** In place of a handle: there are no deltas, and one row says so. */
  static final long NOTHING = -1;

  private final DeltaRow row;
  private final int[] count = new int[1];
  private long open;
  private int place;

  DeltaRows(DataType[] columns, int numbers) {
    row = new DeltaRow(columns, numbers);
    TaskContext context = TaskContext.get();
    if (context != null) {
      context.addTaskCompletionListener((TaskCompletionListener) done -> close());
    }
  }

  /** The handle of the next deltas, 0 when there are no more. */
  abstract long following();

  /** Sets the numbers that follow the columns of a row. */
  abstract void number(DeltaRow row);

  /** Adds a blob to deltas that have no owner yet. */
  static void read(long opened, byte[] blob) {
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
    while (place >= count[0]) {
      if (open == 0) {
        open = following();
        if (open == 0) {
          return false;
        }
      }
      if (open == NOTHING) {
        open = 0;
        place = -1;
        return true;
      }
      ByteBuffer[] buffers = Native.nextDeltas(open, count);
      place = 0;
      if (buffers == null) {
        shut();
      } else {
        row.take(buffers);
      }
    }
    return true;
  }

  @Override
  public final DeltaRow next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    row.move(place++);
    number(row);
    return row;
  }

  /** When the task ends, however it does. */
  void close() {
    shut();
  }

  private void shut() {
    count[0] = 0;
    place = 0;
    if (open != 0) {
      Native.closeDeltas(open);
      open = 0;
    }
  }
}
