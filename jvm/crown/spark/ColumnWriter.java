package crown.spark;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;

/**
 * One column of a block of rows, in plain direct buffers: a validity byte per row, and values in
 * their width (booleans as bytes) or, for strings, end offsets and bytes. {@code
 * crates/crown-jvm/src/columns.rs} reads them.
 */
abstract class ColumnWriter {
  /** Whether its rows have no bound in bytes. */
  final boolean grows;

  private final int width;
  private ByteBuffer present;
  private boolean nulls;
  ByteBuffer values;
  ByteBuffer bytes;

  ColumnWriter(int rows, int width, boolean grows) {
    this.grows = grows;
    this.width = width;
    present = direct(rows);
    values = direct((rows + 1) * width);
  }

  /** For a Spark type. Dates come as days and timestamps as microseconds, which Spark computes. */
  static ColumnWriter of(DataType type, int rows) {
    if (type instanceof BooleanType) {
      return fixed(rows, 1, (row, i, to) -> to.put((byte) (row.getBoolean(i) ? 1 : 0)));
    } else if (type instanceof ByteType) {
      return fixed(rows, 1, (row, i, to) -> to.put(row.getByte(i)));
    } else if (type instanceof ShortType) {
      return fixed(rows, 2, (row, i, to) -> to.putShort(row.getShort(i)));
    } else if (type instanceof IntegerType) {
      return fixed(rows, 4, (row, i, to) -> to.putInt(row.getInt(i)));
    } else if (type instanceof LongType) {
      return fixed(rows, 8, (row, i, to) -> to.putLong(row.getLong(i)));
    } else if (type instanceof TimestampNTZType) {
      return fixed(rows, 8, (row, i, to) -> to.putLong(micros((LocalDateTime) row.get(i))));
    } else if (type instanceof FloatType) {
      return fixed(rows, 4, (row, i, to) -> to.putFloat(row.getFloat(i)));
    } else if (type instanceof DoubleType) {
      return fixed(rows, 8, (row, i, to) -> to.putDouble(row.getDouble(i)));
    } else if (type instanceof DecimalType decimal) {
      return fixed(rows, 16, (row, i, to) -> putDecimal(to, row.getDecimal(i), decimal.scale()));
    } else if (type instanceof StringType) {
      return new Texts(rows) {
        @Override
        byte[] bytesOf(Row row, int index) {
          return row.getString(index).getBytes(StandardCharsets.UTF_8);
        }
      };
    } else if (type instanceof BinaryType) {
      return new Texts(rows) {
        @Override
        byte[] bytesOf(Row row, int index) {
          return (byte[]) row.get(index);
        }
      };
    }
    return NestedWriter.of(type, rows);
  }

  /** Writes field {@code field} of a row at position {@code row}; positions are in order. */
  final void put(Row from, int field, int row) {
    boolean there = !from.isNullAt(field);
    present.put(row, (byte) (there ? 1 : 0));
    nulls |= !there;
    putValue(from, field, row, there);
  }

  abstract void putValue(Row from, int field, int row, boolean there);

  /** Adds the column's three buffers, null for those that it does not need. */
  void fill(List<ByteBuffer> buffers) {
    buffers.add(nulls ? present : null);
    buffers.add(values);
    buffers.add(bytes);
  }

  void clear() {
    nulls = false;
  }

  /** How many bytes of a column that grows are written. */
  long unbounded() {
    return 0;
  }

  /** Makes room for this many rows. */
  void reserve(int rows) {
    if (rows > present.capacity()) {
      int more = Math.max(rows, 2 * present.capacity());
      present = direct(more).put(present.clear()).clear();
      values = direct((more + 1) * width).put(values.clear()).clear();
    }
  }

  static ByteBuffer direct(int size) {
    return ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
  }

  private interface Put {
    void put(Row row, int index, ByteBuffer to);
  }

  private static ColumnWriter fixed(int rows, int width, Put put) {
    return new ColumnWriter(rows, width, false) {
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
      super(rows, 4, true);
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

    @Override
    long unbounded() {
      return bytes.position();
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
