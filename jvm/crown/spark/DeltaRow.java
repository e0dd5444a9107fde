package crown.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder;
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder;
import org.apache.spark.sql.catalyst.encoders.RowEncoder;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The current row of deltas; the next one reuses the same object. Spark's generated code reads each
 * value from here, so no row objects are created: there are many more deltas than changes.
 */
public final class DeltaRow {
  private static final UTF8String[] WORDS = {UTF8String.fromString("insert"), UTF8String.fromString("delete")};
  private static final UTF8String NONE = UTF8String.fromString("none");

  private final ColumnReader[] columns;
  private final long[] numbers;
  private int row;
  private int silent;

  DeltaRow(DataType[] columns, int numbers) {
    this.columns = ColumnReader.of(columns);
    this.numbers = new long[numbers];
  }

  void take(ByteBuffer[] buffers) {
    int next = 0;
    for (ColumnReader column : columns) {
      next = column.take(buffers, next);
    }
  }

  /** Moves to a row; -1 is the row that says that there are no deltas. */
  void move(int row) {
    this.row = row;
  }

  /** Sets the view that has no deltas, for the row that says so. */
  void silent(int view) {
    silent = view;
  }

  /** Sets a number that follows the columns. */
  void number(int place, long value) {
    numbers[place] = value;
  }

  // What generated code calls, by the place of the column.

  public boolean isNull(int column) {
    return row < 0 || columns[column].isNull(row);
  }

  public boolean bool(int column) {
    return columns[column].bool(row);
  }

  public byte int8(int column) {
    return columns[column].int8(row);
  }

  public short int16(int column) {
    return columns[column].int16(row);
  }

  public int int32(int column) {
    return columns[column].int32(row);
  }

  public long int64(int column) {
    return columns[column].int64(row);
  }

  public float float32(int column) {
    return columns[column].float32(row);
  }

  public double float64(int column) {
    return columns[column].float64(row);
  }

  public Decimal decimal(int column, int precision, int scale) {
    return columns[column].decimal(row, precision, scale);
  }

  public UTF8String text(int column) {
    return UTF8String.fromBytes(columns[column].text(row));
  }

  public byte[] bytes(int column) {
    return columns[column].text(row);
  }

  public ArrayData array(int column) {
    return columns[column].array(row);
  }

  public MapData map(int column) {
    return columns[column].map(row);
  }

  public InternalRow struct(int column) {
    return columns[column].struct(row);
  }

  public UTF8String change(int column) {
    return row < 0 ? NONE : WORDS[columns[column].int8(row)];
  }

  public int view(int column) {
    return row < 0 ? silent : columns[column].int32(row);
  }

  public long number(int place) {
    return numbers[place];
  }

  /**
   * Encodes rows of {@code schema}: columns of {@code types}, and numbers. A type is one of Crown's, "change" for the kind of change,
   * or "view" for the number of the view.
   * Values are as Spark has them inside: days, microseconds, bytes of UTF-8.
   */
  @SuppressWarnings("unchecked")
  static Encoder<DeltaRow> encoder(StructType schema, String[] types) {
    DataType own = new ObjectType(DeltaRow.class);
    Expression row = new BoundReference(0, own, false);
    List<Expression> fields = new ArrayList<>();
    for (int place = 0; place < schema.length(); place++) {
      StructField field = schema.fields()[place];
      fields.add(Literal.create(UTF8String.fromString(field.name()), DataTypes.StringType));
      fields.add(
          place < types.length
              ? column(row, types[place], field, place)
              : call(row, "number", DataTypes.LongType, place - types.length));
    }
    // This type is private to the flow: its rows are only encoded, never decoded.
    AgnosticEncoder<?> shape = RowEncoder.encoderFor(schema);
    return new ExpressionEncoder<>(
        (AgnosticEncoder<DeltaRow>) shape, new CreateNamedStruct(seq(fields)), Literal.create(null, own));
  }

  private static Expression column(Expression row, String type, StructField field, int place) {
    DataType data = field.dataType();
    Expression value =
        data instanceof DecimalType decimal
            ? call(row, "decimal", data, place, decimal.precision(), decimal.scale())
            : call(row, method(type), data, place);
    if (!field.nullable()) {
      return value;
    }
    return new If(call(row, "isNull", DataTypes.BooleanType, place), Literal.create(null, data), value);
  }

  private static String method(String type) {
    int nested = type.indexOf('<');
    if (nested >= 0) {
      return type.substring(0, nested);
    }
    return switch (type) {
      case "boolean" -> "bool";
      case "date" -> "int32";
      case "timestamp", "timestamp_ntz" -> "int64";
      case "string", "uuid" -> "text";
      case "binary" -> "bytes";
      default -> type;
    };
  }

  private static Expression call(Expression row, String method, DataType type, int... arguments) {
    List<Expression> given = new ArrayList<>();
    for (int argument : arguments) {
      given.add(new Literal(argument, DataTypes.IntegerType));
    }
    return new Invoke(row, method, type, seq(given), seq(List.<AbstractDataType>of()), false, false, true);
  }

  private static <T> Seq<T> seq(List<T> items) {
    return CollectionConverters.asScala(items).toList();
  }
}
