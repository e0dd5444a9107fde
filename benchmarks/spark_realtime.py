"""The latency of real-time mode: from a change in one Kafka topic to its deltas in another, 3-Hop.

    python -m benchmarks.spark_realtime [--rates 200,1000] [--seconds 150] [--batch 60] [--output result.json]

A broker and a client run from the jars that the tests use (CROWN_KAFKA_JARS, or CROWN_KAFKA_DOWNLOAD=1). Edges carry
the time at which they were sent; a result carries the latest of its three, so its age on arrival is the latency of the
change that made it. The first half of each run warms up and is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import crown.spark
from benchmarks.spark_engines import table
from benchmarks.store import machine
from tests.spark.broker import broker, jars

SQL = (
    "SELECT a.src, b.src AS s, c.src AS t, c.dst, GREATEST(a.at, b.at, c.at) AS at "
    "FROM g a JOIN g b ON a.dst = b.src JOIN g c ON b.dst = c.src"
)
# Slides a window of random edges through a topic at a steady rate, and reads the ages of the
# results.
LOAD = """
import java.time.Duration; import java.util.*;
import org.apache.kafka.clients.admin.*; import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*; import org.apache.kafka.common.TopicPartition;
public class Load {
  public static void main(String[] given) throws Exception {
    Properties p = new Properties();
    p.put("bootstrap.servers", given[0]); p.put("linger.ms", "0"); p.put("fetch.max.wait.ms", "5");
    for (String way : new String[] {"key.serializer", "value.serializer"})
      p.put(way, "org.apache.kafka.common.serialization.StringSerializer");
    for (String way : new String[] {"key.deserializer", "value.deserializer"})
      p.put(way, "org.apache.kafka.common.serialization.StringDeserializer");
    if (given[1].equals("create")) {
      try (Admin admin = Admin.create(p)) {
        List<NewTopic> topics = new ArrayList<>();
        for (int i = 2; i < given.length; i++) topics.add(new NewTopic(given[i], 2, (short) 1));
        admin.createTopics(topics).all().get();
      }
      return;
    }
    int rate = Integer.parseInt(given[3]), seconds = Integer.parseInt(given[4]), window = 2000;
    List<Long> ages = Collections.synchronizedList(new ArrayList<>());
    long started = System.currentTimeMillis(), end = started + 1000L * seconds;
    Thread reader = new Thread(() -> {
      KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p);
      List<TopicPartition> all = List.of(new TopicPartition(given[2], 0), new TopicPartition(given[2], 1));
      consumer.assign(all); consumer.seekToBeginning(all);
      while (System.currentTimeMillis() < end + 5000)
        for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(50))) {
          long now = System.currentTimeMillis();
          int at = r.value().indexOf("\\"at\\":");
          boolean steady = now > started + 500L * seconds, inserted = r.value().contains("\\"insert\\"");
          if (!steady || !inserted || at < 0) continue;
          String number = r.value().substring(at + 5).split("[,}]")[0];
          if (!number.equals("null")) ages.add(now - Long.parseLong(number));
        }
    });
    reader.start();
    Random random = new Random(1); Deque<String> there = new ArrayDeque<>(); long sent = 0;
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
      while (System.currentTimeMillis() < end) {
        String row, word;
        if (there.size() >= window && sent % 2 == 1) { row = there.poll(); word = "delete"; }
        else {
          row = "\\"src\\":" + random.nextInt(1000) + ",\\"dst\\":" + random.nextInt(1000);
          row += ",\\"at\\":" + System.currentTimeMillis();
          there.add(row); word = "insert";
        }
        producer.send(new ProducerRecord<>(given[5], row, "{" + row + ",\\"_change_type\\":\\"" + word + "\\"}"));
        sent++;
        long wait = started + sent * 1000 / rate - System.currentTimeMillis();
        if (wait > 0) Thread.sleep(wait);
      }
    }
    reader.join();
    Collections.sort(ages);
    StringBuilder out = new StringBuilder("{\\"sent\\":" + sent + ",\\"results\\":" + ages.size());
    if (!ages.isEmpty())
      for (int q : new int[] {50, 90, 99})
        out.append(",\\"p" + q + "\\":" + ages.get((int) ((long) ages.size() * q / 100)));
    System.out.println(out.append("}"));
  }
}
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rates", default="200,1000", help="changes per second")
    arguments.add_argument("--seconds", type=int, default=150, help="of each run")
    arguments.add_argument("--batch", type=int, default=60, help="seconds of a batch")
    arguments.add_argument("--cells", type=int, default=2)
    arguments.add_argument("--output", type=Path)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="crown-realtime-") as name, broker(Path(name)) as servers:
        load = Load(servers, Path(name))
        spark = session(options.cells)
        try:
            rates = [int(rate) for rate in options.rates.split(",")]
            found = {rate: measure(spark, load, rate, options, Path(name)) for rate in rates}
        finally:
            spark.stop()
    if options.output:
        text = json.dumps({"machine": machine(), "seconds of a batch": options.batch, "milliseconds": found}, indent=1)
        options.output.write_text(text + "\n")
    measured = (
        f"real-time mode, Kafka to Kafka on loopback, {{}} changes/s, 3-Hop, batches of {options.batch} s, p50 / p99"
    )
    rows = [(measured.format(f"{rate:,}"), _ages(ages), "100 / 600 ms", "40 / 150 ms") for rate, ages in found.items()]
    print(table(rows))


def _ages(found: dict[str, Any]) -> str:
    if "p50" not in found:
        return "no result came in time"
    return f"{found['p50']} / {found['p99']} ms ({found['results']:,} results)"


class Load:
    """The client that sends and reads."""

    def __init__(self, servers: str, directory: Path) -> None:
        self.servers = servers
        self._classes = os.pathsep.join([str(directory), *jars("broker")])
        (directory / "Load.java").write_text(LOAD)
        subprocess.run(["javac", "-cp", self._classes, "-d", str(directory), str(directory / "Load.java")], check=True)

    def run(self, *arguments: str) -> str:
        command = ["java", "-Xmx256m", "-cp", self._classes, "Load", self.servers, *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def session(cells: int) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # A slot for each partition of the topic and each cell, for as long as a batch takes.
    builder = SparkSession.builder.master("local[8]").appName("crown-realtime")
    builder = builder.config("spark.ui.enabled", "false").config("spark.jars", ",".join(jars("connector")))
    spark = crown.spark.configure(builder, cells=cells).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def measure(spark: SparkSession, load: Load, rate: int, options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    changes, answers = f"g{rate}", f"out{rate}"
    load.run("create", changes, answers)
    table = crown.spark.kafka(spark, "src BIGINT, dst BIGINT, at BIGINT", servers=load.servers, topic=changes)
    deltas = crown.spark.maintain(spark, SQL, {"g": table}, cells=options.cells, real_time=True)
    checkpoint = str(directory / f"checkpoint-{rate}")
    writer: Any = crown.spark.to_kafka(deltas, servers=load.servers, topic=answers, checkpoint=checkpoint)
    query = writer.trigger(realTime=f"{options.batch} seconds").start()
    try:
        time.sleep(min(10, options.seconds))
        found: dict[str, Any] = json.loads(load.run("load", answers, str(rate), str(options.seconds), changes))
        assert query.isActive, query.exception()
        return found
    finally:
        query.stop()


if __name__ == "__main__":
    main()
