package crown.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.StructType;

/**
 * A chunk of a cell's state, about 1 MB: a part of a snapshot, or the blobs of one batch as they
 * were applied. Replaying the chunks in the order of their index produces the engine that the state
 * names. {@code version} is the version after the batch, or that of the snapshot.
 */
record Chunk(long version, boolean snapshot, long checksum, byte[] data) {
  static final StructType SCHEMA =
      new StructType().add("version", "long").add("snapshot", "boolean").add("checksum", "long").add("data", "binary");
  static final StructType KEY = new StructType().add("index", "long");

  private static final int TARGET_BYTES = 1 << 20;

  /** A blob of changes of one table. */
  record Blob(String table, byte[] bytes) {}

  static Chunk of(Row row) {
    return new Chunk(row.getLong(0), row.getBoolean(1), row.getLong(2), (byte[]) row.get(3));
  }

  static Chunk of(long version, boolean snapshot, byte[] data) {
    return new Chunk(version, snapshot, sum(data), data);
  }

  Row toRow() {
    return RowFactory.create(version, snapshot, checksum, data);
  }

  boolean intact() {
    return sum(data) == checksum;
  }

  /** Packs blobs in order into as few chunks of about 1 MB as possible. */
  static List<Chunk> log(long version, List<Blob> blobs) {
    List<Chunk> chunks = new ArrayList<>();
    List<Blob> waiting = new ArrayList<>();
    int size = 0;
    for (Blob blob : blobs) {
      if (size > 0 && size + blob.bytes.length > TARGET_BYTES / 4 * 5) {
        chunks.add(of(version, false, joined(waiting, size)));
        waiting.clear();
        size = 0;
      }
      waiting.add(blob);
      size += 10 + blob.table.getBytes(StandardCharsets.UTF_8).length + blob.bytes.length;
    }
    if (size > 0) {
      chunks.add(of(version, false, joined(waiting, size)));
    }
    return chunks;
  }

  private static byte[] joined(List<Blob> blobs, int size) {
    ByteBuffer out = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    for (Blob blob : blobs) {
      byte[] name = blob.table.getBytes(StandardCharsets.UTF_8);
      out.putShort((short) name.length).putLong(blob.bytes.length).put(name).put(blob.bytes);
    }
    return out.array();
  }

  /** Passes the blobs of a log chunk to a cell. */
  void give(long cell) {
    ByteBuffer in = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    while (in.hasRemaining()) {
      byte[] name = new byte[Short.toUnsignedInt(in.getShort())];
      int length = Math.toIntExact(in.getLong());
      in.get(name);
      Native.addChanges(cell, new String(name, StandardCharsets.UTF_8), data, in.position(), length);
      in.position(in.position() + length);
    }
  }

  private static long sum(byte[] data) {
    CRC32 sum = new CRC32();
    sum.update(data);
    return sum.getValue();
  }
}
