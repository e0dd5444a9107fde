package crown.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** One column of a batch of deltas, read from the memory of its Arrow array. */
final class ColumnReader {
  private ByteBuffer present;
  private ByteBuffer values;
  private ByteBuffer bytes;

  void take(ByteBuffer[] buffers, int first) {
    present = buffers[first];
    values = buffers[first + 1] == null ? null : buffers[first + 1].order(ByteOrder.nativeOrder());
    bytes = buffers[first + 2];
  }

  boolean isNull(int row) {
    return present != null && !bit(present, row);
  }

  boolean bool(int row) {
    return bit(values, row);
  }

  byte int8(int row) {
    return values.get(row);
  }

  short int16(int row) {
    return values.getShort(2 * row);
  }

  int int32(int row) {
    return values.getInt(4 * row);
  }

  long int64(int row) {
    return values.getLong(8 * row);
  }

  float float32(int row) {
    return values.getFloat(4 * row);
  }

  double float64(int row) {
    return values.getDouble(8 * row);
  }

  BigDecimal decimal(int row, int scale) {
    byte[] digits = new byte[16];
    for (int i = 0; i < 16; i++) {
      digits[15 - i] = values.get(16 * row + i);
    }
    return new BigDecimal(new BigInteger(digits), scale);
  }

  byte[] text(int row) {
    int start = values.getInt(4 * row);
    byte[] text = new byte[values.getInt(4 * row + 4) - start];
    if (text.length > 0) {
      bytes.get(start, text);
    }
    return text;
  }

  private static boolean bit(ByteBuffer bits, int row) {
    return (bits.get(row >> 3) >> (row & 7) & 1) != 0;
  }
}
