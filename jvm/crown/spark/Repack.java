package crown.spark;

import java.util.Iterator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;

/** Deltas of one operator in, packed changes of the next one's table out. */
public final class Repack implements MapPartitionsFunction<Row, Row> {
  private final String table;
  private final int[] keys;
  private final String spec;

  public Repack(String table, int[] keys, String spec) {
    this.table = table;
    this.keys = keys;
    this.spec = spec;
  }

  @Override
  public Iterator<Row> call(Iterator<Row> deltas) {
    int blob = CellProcessor.DELTAS.fieldIndex("blob");
    return new Packing(table, keys, spec, false) {
      @Override
      boolean give(long dispatcher) {
        if (!deltas.hasNext()) {
          return false;
        }
        Row row = deltas.next();
        if (!row.isNullAt(blob)) {
          Native.addDeltas(dispatcher, (byte[]) row.get(blob));
        }
        return true;
      }
    };
  }
}
