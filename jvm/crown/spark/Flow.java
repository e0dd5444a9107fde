package crown.spark;

import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.WeakHashMap;
import java.util.stream.Stream;
import org.apache.spark.api.java.function.ForeachPartitionFunction;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The operators of a maintained query, for Python to put together. */
public final class Flow {
  private static final Set<SparkSession> LISTENING = Collections.newSetFromMap(new WeakHashMap<>());

  public Flow() {}

  /** Rows of changes as packed blobs; see {@link Dispatch}. */
  public Dataset<Row> dispatch(
      Dataset<Row> changes,
      String table,
      List<Integer> keys,
      String spec,
      List<String> names,
      List<String> extras,
      Rejects rejects,
      boolean realTime) {
    DataType[] types = types(changes.schema(), names.size());
    Dispatch dispatch =
        new Dispatch(table, Operator.ints(keys), spec, texts(names), types, texts(extras), rejects, realTime);
    return changes.mapPartitions(dispatch, Encoders.row(Packing.PACKED));
  }

  /** Packed blobs through the cells of an operator: its deltas as blobs. */
  public Dataset<Row> run(Dataset<Row> packed, Operator operator) {
    listen(packed.sparkSession());
    return packed
        .groupBy(functions.col("cell"))
        .as(StateEncoder.of(CellProcessor.KEY), Encoders.row(Packing.PACKED))
        .transformWithState(
            new CellProcessor(operator), TimeMode.None(), OutputMode.Append(), Encoders.row(CellProcessor.DELTAS));
  }

  /** The same in real-time mode. */
  public Dataset<Row> runRealTime(Dataset<Row> packed, Operator operator) {
    listen(packed.sparkSession());
    return packed
        .groupBy(functions.col("cell"))
        .as(StateEncoder.of(CellProcessor.KEY), Encoders.row(Packing.PACKED))
        .transformWithState(
            new RealTimeProcessor(operator),
            TimeMode.None(),
            OutputMode.Update(),
            Encoders.row(RealTimeProcessor.DELTAS));
  }

  /** An operator's deltas as the packed changes of the next one's table. */
  public Dataset<Row> repack(Dataset<Row> deltas, String table, List<Integer> keys, String spec) {
    return deltas.mapPartitions(new Repack(table, Operator.ints(keys), spec), Encoders.row(Packing.PACKED));
  }

  /** Blobs of deltas as rows of {@code schema}; see {@link Unpack}. */
  public Dataset<Row> unpack(Dataset<Row> deltas, List<String> types, boolean numbered, String schema) {
    StructType rows = (StructType) StructType.fromJson(schema);
    return rows(deltas, new Unpack(types(rows, types.size()), numbered), types, rows);
  }

  /** Blobs of deltas of real-time mode as rows of {@code schema}; see {@link UnpackRealTime}. */
  public Dataset<Row> unpackRealTime(Dataset<Row> deltas, List<String> types, int views, String schema) {
    StructType rows = (StructType) StructType.fromJson(schema);
    return rows(deltas, new UnpackRealTime(types(rows, types.size()), views), types, rows);
  }

  private static Dataset<Row> rows(
      Dataset<Row> deltas, MapPartitionsFunction<Row, DeltaRow> unpack, List<String> types, StructType schema) {
    return deltas.mapPartitions(unpack, DeltaRow.encoder(schema, texts(types))).toDF();
  }

  private static DataType[] types(StructType schema, int columns) {
    return Stream.of(schema.fields()).limit(columns).map(StructField::dataType).toArray(DataType[]::new);
  }

  public Operator operator(
      String name,
      String view,
      String plan,
      String fingerprint,
      String sql,
      String identity,
      String inputs,
      String names,
      List<String> tables,
      List<Integer> keys,
      List<String> ordered,
      Rejects rejects,
      long memory) {
    return new Operator(name, view, plan, fingerprint, sql, identity, inputs, names, tables, keys, ordered, rejects, memory);
  }

  /** Lets cells of the operator with this fingerprint continue state with one of the others. */
  public void accept(String fingerprint, List<String> others) {
    Operator.accept(fingerprint, others);
  }

  /** Whether the cells of the operator with this fingerprint report on the nodes of their trees, from the next batch on. */
  public void watch(String fingerprint, boolean watched) {
    Operator.watch(fingerprint, watched);
  }

  public Rejects rejects(String directory, String view) {
    return new Rejects(directory, view);
  }

  /** Of an executor: engines that wait for their next batch, open native handles, bytes that the kernel holds. */
  public List<Long> alive(SparkSession session) {
    MapPartitionsFunction<Long, Long> count =
        none -> List.of((long) Engines.count(), Native.handles(), Native.bytes()).iterator();
    return session.range(0, 1, 1, 1).mapPartitions(count, Encoders.LONG()).collectAsList();
  }

  private static String[] texts(List<String> values) {
    return values.toArray(new String[0]);
  }

  /**
   * Frees the engines of ended queries with a small job, because only tasks reach the executors
   * (and, if a session received this jar late, their copy of these classes). Executors that the job
   * misses free them when they are idle.
   */
  private static void listen(SparkSession session) {
    synchronized (LISTENING) {
      if (!LISTENING.add(session)) {
        return;
      }
    }
    session
        .streams()
        .addListener(
            new StreamingQueryListener() {
              @Override
              public void onQueryStarted(QueryStartedEvent event) {}

              @Override
              public void onQueryProgress(QueryProgressEvent event) {}

              @Override
              public void onQueryTerminated(QueryTerminatedEvent event) {
                Thread freeing = new Thread(() -> free(session, event.id()), "crown-free");
                freeing.setDaemon(true);
                freeing.start();
              }
            });
  }

  private static void free(SparkSession session, UUID query) {
    try {
      int tasks = 2 * session.sparkContext().defaultParallelism();
      session.range(0, tasks, 1, tasks).foreachPartition((ForeachPartitionFunction<Long>) none -> Engines.forget(query));
    } catch (Exception ended) {
      // The session has stopped, which Scala reports with a checked exception: its executors are
      // gone, and their engines with them.
    }
  }
}
