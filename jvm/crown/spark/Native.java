package crown.spark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * The kernel (crates/crown-jvm). A handle is used by one thread at a time and closed once; every method may throw a {@link
 * CrownException}.
 */
final class Native {
  static {
    load();
  }

  private Native() {}

  /** A cell without an engine yet. */
  static native long open(String plan);

  /** Adds a part of a snapshot, from which the engine will be built. */
  static native void addPart(long cell, byte[] part);

  /** Adds a blob of changes to the next batch. */
  static native void addChanges(long cell, String table, byte[] bytes, int offset, int length);

  /** Applies the batch without deltas, while a state is rebuilt. */
  static native void replay(long cell, boolean quarantine);

  /** Ends the rebuilding: from here on batches have deltas. */
  static native void ready(long cell);

  /** Checks and starts the batch, whose deltas then come by {@link #next}. */
  static native void apply(long cell, boolean quarantine);

  /** The next blob of deltas; null when the batch is complete. */
  static native byte[] next(long cell);

  /** Places in {@link #report}. */
  static final int UPDATES = 0;

  static final int DELTAS = 1;
  static final int STORED = 2;
  static final int BYTES = 3;
  static final int COUNTER_CHANGES = 4;

  /** Of the last batch: updates, deltas, stored rows, bytes of the engine, bits of counter changes per update. */
  static native long[] report(long cell);

  /** What the nodes of the trees hold and have done, and their hot keys, as JSON. */
  static native String figures(long cell);

  /** The changes that the last batch quarantined, as lines of {@link Rejects}, or null. */
  static native String rejected(long cell, long batch, String origin);

  /** The state in parts of about 1 MB. */
  static native byte[][] save(long cell);

  static native void closeCell(long cell);

  /** Begins a batch whose changes come one at a time. */
  static native void beginRealTime(long cell, long batch, String origin, boolean quarantine);

  /**
   * The deltas of a change, null if there are none; sets {@code rows} to their number. A deletion
   * that arrives before its insertion is held, unless order matters.
   */
  static native byte[] change(long cell, String table, byte[] blob, boolean ordered, int[] rows);

  /** Ends the batch and returns its last deltas. Deletions still held are rejected. */
  static native byte[] endRealTime(long cell, int[] rows);

  /** What the batch has applied: alternating table names and blobs of their changes. */
  static native byte[][] realTimeLog(long cell);

  /** The changes that the batch quarantined, as lines of {@link Rejects}, or null. */
  static native String realTimeRejected(long cell);

  /** A dispatcher by its JSON description. */
  static native long dispatcher(String spec);

  /** Adds a block of rows: three buffers for each column, then those for "is deleted" and the cell, or null. */
  static native void addRows(long dispatcher, int rows, ByteBuffer[] buffers);

  /** Adds an operator's deltas as changes of the next operator. */
  static native void addDeltas(long dispatcher, byte[] blob);

  /** All rows were added. */
  static native void finish(long dispatcher);

  /** The next blob that is full, or null. Sets {@code place} to its cell and to 1 if it holds deletions. */
  static native byte[] packed(long dispatcher, int[] place);

  static native void closeDispatcher(long dispatcher);

  /** Deltas to be read batch by batch; none yet. */
  static native long deltas();

  /** Adds a blob of deltas. */
  static native void unpack(long deltas, byte[] blob);

  /** Sorts everything that was added by value. */
  static native void sort(long deltas);

  /** Three buffers for each column of the next batch, or null. Those of the batch before may not be read any more. */
  static native ByteBuffer[] nextDeltas(long deltas, int[] rows);

  static native void closeDeltas(long deltas);

  /** Bytes that the kernel holds in this process. */
  static native long bytes();

  /** Handles that are open. */
  static native long handles();

  private static void load() {
    String name = System.mapLibraryName("crown_jvm");
    String resource = "/crown/native/" + platform() + "/" + name;
    try (InputStream library = Native.class.getResourceAsStream(resource)) {
      if (library == null) {
        throw new CrownException(
            "CROWN-JVM-PLATFORM",
            "this build of Crown has no kernel for "
                + platform()
                + "\ndo:  install a wheel of Crown that was built on the executors' platform");
      }
      Path directory = Files.createTempDirectory("crown-");
      Path file = directory.resolve(name);
      Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
      System.load(file.toString());
      // A loaded library needs no name any more.
      Files.delete(file);
      Files.delete(directory);
    } catch (IOException error) {
      throw new CrownException(
          "CROWN-JVM-LIBRARY",
          "the kernel can't be unpacked: " + error + "\ndo:  make java.io.tmpdir writable and large enough");
    }
  }

  private static String platform() {
    String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
    return (system.contains("mac") ? "macos" : system)
        + "-"
        + (machine.equals("amd64") ? "x86_64" : machine.equals("arm64") ? "aarch64" : machine);
  }
}
