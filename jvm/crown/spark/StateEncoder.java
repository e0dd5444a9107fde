package crown.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * Encodes rows of state as {@code Encoders.row} does, but caches Spark's generated code per thread.
 *
 * <p>Spark creates new serializers for each task and each variable, and generates their code each
 * time. In a small batch that was a third of the tasks' work. The output of a serializer is copied
 * before its next use, so one per thread is enough.
 */
final class StateEncoder extends ExpressionEncoder<Row> {
  private static final Map<StructType, StateEncoder> KNOWN = new ConcurrentHashMap<>();

  private final transient ThreadLocal<Serializer<Row>> serializers;
  private final transient ThreadLocal<Deserializer<Row>> deserializers;

  static StateEncoder of(StructType schema) {
    return KNOWN.computeIfAbsent(schema, found -> new StateEncoder(ExpressionEncoder.apply(found)));
  }

  private StateEncoder(ExpressionEncoder<Row> plain) {
    super(plain.encoder(), plain.objSerializer(), plain.objDeserializer());
    ExpressionEncoder<Row> bound =
        plain.resolveAndBind(plain.resolveAndBind$default$1(), plain.resolveAndBind$default$2());
    serializers = ThreadLocal.withInitial(plain::createSerializer);
    deserializers = ThreadLocal.withInitial(bound::createDeserializer);
  }

  /** What it deserializes is bound already. */
  @Override
  public ExpressionEncoder<Row> resolveAndBind(Seq<Attribute> attributes, Analyzer analyzer) {
    return this;
  }

  @Override
  public Serializer<Row> createSerializer() {
    return serializers.get();
  }

  @Override
  public Deserializer<Row> createDeserializer() {
    return deserializers.get();
  }

  /** Local to the executor: what threads cache is not serialized. */
  private Object readResolve() {
    return of(schema());
  }
}
