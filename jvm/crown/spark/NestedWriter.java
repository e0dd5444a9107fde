package crown.spark;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A column of arrays, structs or maps: its parts are columns, whose buffers follow its own. */
abstract class NestedWriter extends ColumnWriter {
  final ColumnWriter[] parts;

  private NestedWriter(int rows, int width, DataType... types) {
    super(rows, width, true);
    parts = Stream.of(types).map(type -> ColumnWriter.of(type, rows)).toArray(ColumnWriter[]::new);
  }

  static ColumnWriter of(DataType type, int rows) {
    if (type instanceof ArrayType array) {
      return new Lists(rows, array.elementType()) {
        @Override
        Row[] partsOf(Row row, int index) {
          return new Row[] {RowFactory.create(row.getList(index).toArray())};
        }
      };
    } else if (type instanceof MapType map) {
      return new Lists(rows, map.keyType(), map.valueType()) {
        @Override
        Row[] partsOf(Row row, int index) {
          Map<?, ?> entries = row.getJavaMap(index);
          return new Row[] {
            RowFactory.create(entries.keySet().toArray()), RowFactory.create(entries.values().toArray())
          };
        }
      };
    }
    return new Structs(rows, (StructType) type);
  }

  @Override
  final void fill(List<ByteBuffer> buffers) {
    super.fill(buffers);
    for (ColumnWriter part : parts) {
      part.fill(buffers);
    }
  }

  @Override
  void clear() {
    super.clear();
    for (ColumnWriter part : parts) {
      part.clear();
    }
  }

  @Override
  long unbounded() {
    long sum = 0;
    for (ColumnWriter part : parts) {
      sum += part.unbounded();
    }
    return sum;
  }

  /** Rows of parts one after the other, and where those of each value end. */
  private abstract static class Lists extends NestedWriter {
    private static final int WIDEST = 16;

    private int end;

    Lists(int rows, DataType... types) {
      super(rows, 4, types);
    }

    /** For each part, a row of its values. */
    abstract Row[] partsOf(Row row, int index);

    @Override
    void putValue(Row from, int field, int row, boolean there) {
      if (there) {
        Row[] found = partsOf(from, field);
        int length = found[0].length();
        for (int part = 0; part < parts.length; part++) {
          parts[part].reserve(end + length);
          for (int i = 0; i < length; i++) {
            parts[part].put(found[part], i, end + i);
          }
        }
        end += length;
      }
      values.putInt(4 * (row + 1), end);
    }

    @Override
    void clear() {
      super.clear();
      end = 0;
    }

    @Override
    long unbounded() {
      return super.unbounded() + (long) WIDEST * parts.length * end;
    }
  }

  private static final class Structs extends NestedWriter {
    private final Row absent;

    Structs(int rows, StructType type) {
      super(rows, 0, Stream.of(type.fields()).map(StructField::dataType).toArray(DataType[]::new));
      absent = RowFactory.create(new Object[parts.length]);
    }

    @Override
    void putValue(Row from, int field, int row, boolean there) {
      Row found = there ? from.getStruct(field) : absent;
      for (int part = 0; part < parts.length; part++) {
        parts[part].put(found, part, row);
      }
    }

    @Override
    void reserve(int rows) {
      super.reserve(rows);
      for (ColumnWriter part : parts) {
        part.reserve(rows);
      }
    }
  }
}
