package crown.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One column of a batch of deltas, read from the memory of its Arrow array. The parts of a nested
 * column are columns, whose buffers follow its own.
 */
final class ColumnReader {
  private final DataType type;
  private final ColumnReader[] parts;
  private ByteBuffer present;
  private ByteBuffer values;
  private ByteBuffer bytes;

  private ColumnReader(DataType type) {
    this.type = type;
    parts = of(partsOf(type));
  }

  static ColumnReader[] of(DataType... types) {
    return Stream.of(types).map(ColumnReader::new).toArray(ColumnReader[]::new);
  }

  private static DataType[] partsOf(DataType type) {
    if (type instanceof ArrayType array) {
      return new DataType[] {array.elementType()};
    } else if (type instanceof MapType map) {
      return new DataType[] {map.keyType(), map.valueType()};
    } else if (type instanceof StructType struct) {
      return Stream.of(struct.fields()).map(StructField::dataType).toArray(DataType[]::new);
    }
    return new DataType[0];
  }

  /** Takes the buffers from {@code first} on; returns where those of the next column are. */
  int take(ByteBuffer[] buffers, int first) {
    present = buffers[first];
    values = buffers[first + 1] == null ? null : buffers[first + 1].order(ByteOrder.nativeOrder());
    bytes = buffers[first + 2];
    int next = first + 3;
    for (ColumnReader part : parts) {
      next = part.take(buffers, next);
    }
    return next;
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

  Decimal decimal(int row, int precision, int scale) {
    byte[] digits = new byte[16];
    for (int i = 0; i < 16; i++) {
      digits[15 - i] = values.get(16 * row + i);
    }
    return Decimal.apply(new BigDecimal(new BigInteger(digits), scale), precision, scale);
  }

  byte[] text(int row) {
    int start = values.getInt(4 * row);
    byte[] text = new byte[values.getInt(4 * row + 4) - start];
    if (text.length > 0) {
      bytes.get(start, text);
    }
    return text;
  }

  ArrayData array(int row) {
    return parts[0].slice(values.getInt(4 * row), values.getInt(4 * row + 4));
  }

  MapData map(int row) {
    int start = values.getInt(4 * row);
    int end = values.getInt(4 * row + 4);
    return new ArrayBasedMapData(parts[0].slice(start, end), parts[1].slice(start, end));
  }

  InternalRow struct(int row) {
    Object[] fields = new Object[parts.length];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = parts[i].value(row);
    }
    return new GenericInternalRow(fields);
  }

  private ArrayData slice(int start, int end) {
    Object[] elements = new Object[end - start];
    for (int i = 0; i < elements.length; i++) {
      elements[i] = value(start + i);
    }
    return new GenericArrayData(elements);
  }

  /** A part of a nested value, as Spark has it inside. */
  private Object value(int row) {
    if (isNull(row)) {
      return null;
    } else if (type instanceof BooleanType) {
      return bool(row);
    } else if (type instanceof ByteType) {
      return int8(row);
    } else if (type instanceof ShortType) {
      return int16(row);
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return int32(row);
    } else if (type instanceof FloatType) {
      return float32(row);
    } else if (type instanceof DoubleType) {
      return float64(row);
    } else if (type instanceof DecimalType decimal) {
      return decimal(row, decimal.precision(), decimal.scale());
    } else if (type instanceof StringType) {
      return UTF8String.fromBytes(text(row));
    } else if (type instanceof BinaryType) {
      return text(row);
    } else if (type instanceof ArrayType) {
      return array(row);
    } else if (type instanceof MapType) {
      return map(row);
    } else if (type instanceof StructType) {
      return struct(row);
    }
    return int64(row); // numbers of 64 bits, and timestamps
  }

  private static boolean bit(ByteBuffer bits, int row) {
    return (bits.get(row >> 3) >> (row & 7) & 1) != 0;
  }
}
