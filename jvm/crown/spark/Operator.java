package crown.spark;

import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** One stateful operator of a query: which plan its cells run, and how. Travels to the executors. */
public final class Operator implements Serializable {
  final String name;
  /** Of the whole view: a query may hold several. */
  final String view;
  final String plan;
  final String fingerprint;
  final String sql;
  /** What the state says about its view, as JSON. */
  final String identity;
  final String inputs;
  final String names;
  final String[] tables;
  final int[] keys;
  /** Tables with a key or a window: their changes count in order, so a log is replayed batch by batch. */
  final List<String> ordered;
  /** Fingerprints of state that the driver has found to mean the same; set when a task is sent. */
  private List<String> accepted = List.of();
  /** Whether someone looks at the figures of its nodes; set when a task is sent. */
  private boolean watched;
  final boolean quarantine;
  final Rejects rejects;
  final long memory;

  /**
   * @param tables in the order of application
   * @param keys the grouping key of each cell
   * @param rejects where rejected changes go, null when they fail the batch
   * @param memory how many bytes all engines of an executor may hold, 0 for what the machine has
   */
  public Operator(
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
    this.name = name;
    this.view = view;
    this.plan = plan;
    this.fingerprint = fingerprint;
    this.sql = sql;
    this.identity = identity;
    this.inputs = inputs;
    this.names = names;
    this.tables = tables.toArray(new String[0]);
    this.keys = ints(keys);
    this.quarantine = rejects != null;
    this.ordered = List.copyOf(ordered);
    this.rejects = rejects;
    this.memory = memory;
  }

  /** What the driver accepts for each operator, by the operator's fingerprint. */
  private static final Map<String, List<String>> ACCEPTED = new ConcurrentHashMap<>();

  static void accept(String fingerprint, List<String> others) {
    ACCEPTED.put(fingerprint, List.copyOf(others));
  }

  /** The operators whose nodes someone looks at, by fingerprint. */
  private static final Set<String> WATCHED = ConcurrentHashMap.newKeySet();

  static void watch(String fingerprint, boolean watched) {
    if (watched) {
      WATCHED.add(fingerprint);
    } else {
      WATCHED.remove(fingerprint);
    }
  }

  private void writeObject(ObjectOutputStream out) throws IOException {
    accepted = ACCEPTED.getOrDefault(fingerprint, accepted);
    watched = WATCHED.contains(fingerprint);
    out.defaultWriteObject();
  }

  boolean accepts(String other) {
    return fingerprint.equals(other) || accepted.contains(other);
  }

  boolean isWatched() {
    return watched;
  }

  static int[] ints(List<Integer> values) {
    return values.stream().mapToInt(Integer::intValue).toArray();
  }

  int cell(int key) {
    return java.util.Arrays.stream(keys).boxed().toList().indexOf(key);
  }

  boolean ordered(String table) {
    return ordered.contains(table);
  }

  int order(String table) {
    return java.util.Arrays.asList(tables).indexOf(table);
  }

  String named(int cell) {
    return "cell " + cell + " (" + name + ")";
  }

  /** Works on a cell. Whatever fails abandons what the cell is doing; errors of Crown name the cell. */
  void guarded(int cell, Runnable work, Runnable abandon) {
    try {
      work.run();
    } catch (CrownException error) {
      abandon.run();
      throw error.at(named(cell));
    } catch (RuntimeException | Error error) {
      abandon.run();
      throw error;
    }
  }
}
