package crown.spark;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * The engines of this executor, by query, view, operator and cell.
 *
 * <p>The law: an engine is handed out only under the exact mark that it was left with, to one owner
 * at a time, and every applied batch leaves it under a new random token. So an attempt that Spark
 * did not commit leaves an engine that no state names; the next attempt closes it and rebuilds the
 * engine.
 */
final class Engines {
  /** What a state names: how many batches led to it, and the token of the attempt that wrote it. */
  record Mark(long version, String token) {}

  record Key(UUID query, String view, String operator, int cell) {}

  private record Kept(long cell, Mark mark, long used) {}

  private static final long IDLE_NANOS = TimeUnit.MINUTES.toNanos(30);
  // An engine that was idle this long may be freed when memory is short: its cell has moved, or its
  // query is slow.
  private static final long RESTING_NANOS = TimeUnit.MINUTES.toNanos(1);
  // The rest is for the JVM outside its heap, and for other processes.
  private static final double USABLE = 0.8;

  private static final Map<Key, Kept> KEPT = new ConcurrentHashMap<>();

  static {
    Thread sweeper = new Thread(Engines::sweep, "crown-engines");
    sweeper.setDaemon(true);
    sweeper.start();
  }

  private Engines() {}

  /** The engine at a mark, now owned by the caller; 0 if there is none. */
  static long take(Key key, Mark mark) {
    Kept kept = KEPT.remove(key);
    if (kept == null) {
      return 0;
    }
    if (kept.mark.equals(mark)) {
      return kept.cell;
    }
    Native.closeCell(kept.cell);
    return 0;
  }

  /** Keeps an engine for the next batch. */
  static void keep(Key key, Mark mark, long cell) {
    Kept before = KEPT.put(key, new Kept(cell, mark, System.nanoTime()));
    if (before != null) {
      Native.closeCell(before.cell);
    }
  }

  /** Frees the engines of a query that has ended. */
  static void forget(UUID query) {
    KEPT.forEach((key, kept) -> closeIf(key, kept, key.query.equals(query)));
  }

  static int count() {
    return KEPT.size();
  }

  /** Makes sure that the kernel holds no more than {@code limit} bytes (0: what the machine has beside the heap). */
  static void requireRoom(long limit) {
    long most = limit > 0 ? limit : available();
    if (Native.bytes() > most) {
      closeUnused(RESTING_NANOS);
    }
    long held = Native.bytes();
    if (held > most) {
      throw new CrownException(
          "CROWN-JVM-MEMORY",
          String.format(
              "the engines of this executor hold %,d bytes, more than the %,d that they may%nwhy: %s%ndo:  %s",
              held,
              most,
              limit > 0 ? "spark.crown.memory says so" : "more would leave too little to the JVM and the system",
              "use more executors or more memory, or raise spark.crown.memory"));
    }
  }

  private static long available() {
    var system = ManagementFactory.getPlatformMXBean(com.sun.management.OperatingSystemMXBean.class);
    long beside = system.getTotalMemorySize() - Runtime.getRuntime().maxMemory();
    return Math.max((long) (USABLE * beside), 256L << 20);
  }

  private static void sweep() {
    while (true) {
      try {
        TimeUnit.MINUTES.sleep(1);
      } catch (InterruptedException stopped) {
        return;
      }
      closeUnused(IDLE_NANOS);
    }
  }

  private static void closeUnused(long nanos) {
    long now = System.nanoTime();
    KEPT.forEach((key, kept) -> closeIf(key, kept, now - kept.used > nanos));
  }

  private static void closeIf(Key key, Kept kept, boolean condition) {
    if (condition && KEPT.remove(key, kept)) {
      Native.closeCell(kept.cell);
    }
  }
}
