package crown.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;

/** One column of a batch of deltas, read from the memory of its Arrow array. */
abstract class ColumnReader {
  private static final String[] WORDS = {"insert", "delete"};
  private ByteBuffer present;
  ByteBuffer values;
  ByteBuffer bytes;

  /** For a Crown type, or "change" for the kind of change. */
  static ColumnReader of(String type) {
    switch (type) {
      case "boolean":
        return reader((in, row) -> bit(in.values, row));
      case "int8":
        return reader((in, row) -> in.values.get(row));
      case "int16":
        return reader((in, row) -> in.values.getShort(2 * row));
      case "int32":
      case "date":
        return reader((in, row) -> in.values.getInt(4 * row));
      case "int64":
      case "timestamp":
        return reader((in, row) -> in.values.getLong(8 * row));
      case "timestamp_ntz":
        return reader((in, row) -> time(in.values.getLong(8 * row)));
      case "float32":
        return reader((in, row) -> in.values.getFloat(4 * row));
      case "float64":
        return reader((in, row) -> in.values.getDouble(8 * row));
      case "string":
        return reader((in, row) -> new String(in.text(row), StandardCharsets.UTF_8));
      case "binary":
        return reader(ColumnReader::text);
      case "change":
        return reader((in, row) -> WORDS[in.values.get(row)]);
      default:
        int scale = Integer.parseInt(type.substring(type.indexOf(',') + 1, type.length() - 1).trim());
        return reader((in, row) -> ColumnWriter.decimal(in.values, row, scale));
    }
  }

  final void take(ByteBuffer[] buffers, int first) {
    present = buffers[first];
    values = ordered(buffers[first + 1]);
    bytes = buffers[first + 2];
  }

  final Object get(int row) {
    return present == null || bit(present, row) ? value(row) : null;
  }

  abstract Object value(int row);

  private interface Get {
    Object get(ColumnReader in, int row);
  }

  private static ColumnReader reader(Get get) {
    return new ColumnReader() {
      @Override
      Object value(int row) {
        return get.get(this, row);
      }
    };
  }

  private byte[] text(int row) {
    int start = values.getInt(4 * row);
    byte[] text = new byte[values.getInt(4 * row + 4) - start];
    if (text.length > 0) {
      bytes.get(start, text);
    }
    return text;
  }

  private static ByteBuffer ordered(ByteBuffer buffer) {
    return buffer == null ? null : buffer.order(ByteOrder.nativeOrder());
  }

  private static boolean bit(ByteBuffer bits, int row) {
    return (bits.get(row >> 3) >> (row & 7) & 1) != 0;
  }

  private static LocalDateTime time(long micros) {
    long second = Math.floorDiv(micros, 1_000_000L);
    return LocalDateTime.ofEpochSecond(second, (int) Math.floorMod(micros, 1_000_000L) * 1000, ZoneOffset.UTC);
  }
}
