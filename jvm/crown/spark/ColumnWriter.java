package crown.spark;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import org.apache.spark.sql.Row;

/**
 * One column of a block of rows, in plain direct buffers: a validity byte per row, and values in
 * their width (booleans as bytes) or, for strings, end offsets and bytes. {@code
 * crates/crown-jvm/src/columns.rs} reads them.
 */
abstract class ColumnWriter {
  private final ByteBuffer present;
  private boolean nulls;
  ByteBuffer values;
  ByteBuffer bytes;

  private ColumnWriter(int rows, int width) {
    present = direct(rows);
    values = direct((rows + 1) * width);
  }

  /** For a Crown type. Dates come as days and timestamps as microseconds, which Spark computes. */
  static ColumnWriter of(String type, int rows) {
    switch (type) {
      case "boolean":
        return fixed(rows, 1, (row, i, to) -> to.put((byte) (row.getBoolean(i) ? 1 : 0)));
      case "int8":
        return fixed(rows, 1, (row, i, to) -> to.put(row.getByte(i)));
      case "int16":
        return fixed(rows, 2, (row, i, to) -> to.putShort(row.getShort(i)));
      case "int32":
      case "date":
        return fixed(rows, 4, (row, i, to) -> to.putInt(row.getInt(i)));
      case "int64":
      case "timestamp":
        return fixed(rows, 8, (row, i, to) -> to.putLong(row.getLong(i)));
      case "timestamp_ntz":
        return fixed(rows, 8, (row, i, to) -> to.putLong(micros((LocalDateTime) row.get(i))));
      case "float32":
        return fixed(rows, 4, (row, i, to) -> to.putFloat(row.getFloat(i)));
      case "float64":
        return fixed(rows, 8, (row, i, to) -> to.putDouble(row.getDouble(i)));
      case "string":
        return new Texts(rows) {
          @Override
          byte[] bytesOf(Row row, int index) {
            return row.getString(index).getBytes(StandardCharsets.UTF_8);
          }
        };
      case "binary":
        return new Texts(rows) {
          @Override
          byte[] bytesOf(Row row, int index) {
            return (byte[]) row.get(index);
          }
        };
      default:
        int scale = Integer.parseInt(type.substring(type.indexOf(',') + 1, type.length() - 1).trim());
        return fixed(rows, 16, (row, i, to) -> putDecimal(to, row.getDecimal(i), scale));
    }
  }

  /** Writes field {@code field} of a row at position {@code row}; positions are in order. */
  final void put(Row from, int field, int row) {
    boolean there = !from.isNullAt(field);
    present.put(row, (byte) (there ? 1 : 0));
    nulls |= !there;
    putValue(from, field, row, there);
  }

  abstract void putValue(Row from, int field, int row, boolean there);

  /** The column's three buffers; null for those that it does not need. */
  final void fill(ByteBuffer[] buffers, int first) {
    buffers[first] = nulls ? present : null;
    buffers[first + 1] = values;
    buffers[first + 2] = bytes;
  }

  void clear() {
    nulls = false;
  }

  static ByteBuffer direct(int size) {
    return ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
  }

  private interface Put {
    void put(Row row, int index, ByteBuffer to);
  }

  private static ColumnWriter fixed(int rows, int width, Put put) {
    return new ColumnWriter(rows, width) {
      @Override
      void putValue(Row from, int field, int row, boolean there) {
        values.position(row * width);
        if (there) {
          put.put(from, field, values);
        } else {
          for (int i = 0; i < width; i++) {
            values.put((byte) 0);
          }
        }
      }
    };
  }

  private abstract static class Texts extends ColumnWriter {
    Texts(int rows) {
      super(rows, 4);
      bytes = direct(16 * rows);
    }

    abstract byte[] bytesOf(Row row, int index);

    @Override
    void putValue(Row from, int field, int row, boolean there) {
      if (there) {
        byte[] text = bytesOf(from, field);
        if (bytes.remaining() < text.length) {
          ByteBuffer larger = direct(Math.max(2 * bytes.capacity(), bytes.position() + text.length));
          bytes.flip();
          bytes = larger.put(bytes);
        }
        bytes.put(text);
      }
      values.putInt(4 * (row + 1), bytes.position());
    }

    @Override
    void clear() {
      super.clear();
      bytes.clear();
    }
  }

  private static long micros(LocalDateTime time) {
    return Math.addExact(Math.multiplyExact(time.toEpochSecond(ZoneOffset.UTC), 1_000_000L), time.getNano() / 1000);
  }

  /** Sixteen bytes, little-endian, sign-extended. */
  private static void putDecimal(ByteBuffer to, BigDecimal value, int scale) {
    byte[] digits = value.setScale(scale).unscaledValue().toByteArray();
    byte sign = (byte) (digits[0] < 0 ? -1 : 0);
    for (int i = 0; i < 16; i++) {
      to.put(i < digits.length ? digits[digits.length - 1 - i] : sign);
    }
  }
}
