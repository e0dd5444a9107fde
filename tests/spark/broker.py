"""A Kafka broker for tests: one process, run from its jars, and Spark's connector for it.

The jars come from the directory CROWN_KAFKA_JARS (folders `broker` and `connector`), else from the cache directory of
the user, where Maven puts them if CROWN_KAFKA_DOWNLOAD is set. Tests are skipped without them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_BROKER = ("org.apache.kafka:kafka_2.13:3.9.1",)
_CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.0",
)
_MINUTES = 10
JAVA = ["java", "-Xmx256m", *os.environ.get("SPARK_SUBMIT_OPTS", "").split()]

# Sends lines of "topic, key, value" (a tab between them) and prints a topic as JSON, by Kafka's own
# client.
CLIENT = """
import java.time.Duration; import java.util.*; import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*; import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*; import org.apache.kafka.common.TopicPartition;
public class Client {
  public static void main(String[] given) throws Exception {
    Properties p = new Properties();
    p.put("bootstrap.servers", given[0]);
    // A busy machine may take minutes.
    p.put("default.api.timeout.ms", "600000");
    p.put("max.block.ms", "600000");
    p.put("delivery.timeout.ms", "600000");
    for (String way : new String[] {"key.serializer", "value.serializer"})
      p.put(way, "org.apache.kafka.common.serialization.StringSerializer");
    for (String way : new String[] {"key.deserializer", "value.deserializer"})
      p.put(way, "org.apache.kafka.common.serialization.StringDeserializer");
    Scanner lines = new Scanner(System.in, "UTF-8");
    if (given[1].equals("create")) {
      try (Admin admin = Admin.create(p)) {
        List<NewTopic> topics = new ArrayList<>();
        for (int i = 2; i < given.length; i++) topics.add(new NewTopic(given[i], 2, (short) 1));
        admin.createTopics(topics).all().get(600, TimeUnit.SECONDS);
      }
    } else if (given[1].equals("send")) {
      try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
        while (lines.hasNextLine()) {
          String[] parts = lines.nextLine().split("\\t", -1);
          String value = parts[2].equals("NULL") ? null : parts[2];
          producer.send(new ProducerRecord<>(parts[0], parts[1].isEmpty() ? null : parts[1], value));
        }
      }
    } else {
      try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p)) {
        List<TopicPartition> all = List.of(new TopicPartition(given[2], 0), new TopicPartition(given[2], 1));
        consumer.assign(all); consumer.seekToBeginning(all);
        Map<TopicPartition, Long> ends = consumer.endOffsets(all);
        while (all.stream().anyMatch(t -> consumer.position(t) < ends.get(t)))
          for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(500)))
            System.out.println(r.partition() + "\\t" + r.key() + "\\t" + r.value());
      }
    }
  }
}
"""


def jars(kind: str) -> list[str]:
    """The jars of the `broker` (with all it needs) or the `connector` (what PySpark lacks); skips the test without."""
    given = os.environ.get("CROWN_KAFKA_JARS")
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crown-kafka"
    folder = base / kind
    if not folder.is_dir():
        _fetch(_BROKER if kind == "broker" else _CONNECTOR, folder, transitive=kind == "broker")
    return sorted(str(jar) for jar in folder.glob("*.jar"))


def _fetch(artifacts: tuple[str, ...], folder: Path, *, transitive: bool) -> None:
    if not os.environ.get("CROWN_KAFKA_DOWNLOAD"):
        pytest.skip("Kafka's jars are not there: set CROWN_KAFKA_JARS, or CROWN_KAFKA_DOWNLOAD=1 to get them by Maven")
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip("Kafka's jars are not there, and neither is Maven to get them: set CROWN_KAFKA_JARS")
    early = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    early.mkdir(parents=True)
    exclusions = (
        ""
        if transitive
        else "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    )
    dependencies = ""
    for artifact in artifacts:
        group, name, version = artifact.split(":")
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
            f"{exclusions}</dependency>"
        )
    (early / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>crown</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=.", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(command, cwd=early, capture_output=True, text=True, check=False, timeout=60 * _MINUTES)
        failed = done.stdout[-500:] if done.returncode else ""
    except subprocess.TimeoutExpired:
        failed = f"no answer in {_MINUTES} minutes"
    if failed:
        shutil.rmtree(early, ignore_errors=True)
        pytest.skip(f"Kafka's jars can't be had from Maven: {failed}")
    try:
        early.rename(folder)
    except OSError:  # another test process was first
        shutil.rmtree(early, ignore_errors=True)


@contextmanager
def broker(directory: Path) -> Iterator[str]:
    """Start a broker; gives its address."""
    port, controller = _free_port(), _free_port()
    properties = directory / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        f"log.dirs={directory / 'logs'}\nnum.partitions=2\noffsets.topic.replication.factor=1\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
        "group.initial.rebalance.delay.ms=0\n"
    )
    java = [*JAVA, "-cp", os.pathsep.join(jars("broker"))]
    format_ = ["kafka.tools.StorageTool", "format", "-t", "Y3Jvd24tdGVzdHMtY3Jvdw", "-c", str(properties)]
    subprocess.run([*java, *format_], check=True, capture_output=True)
    with (directory / "broker.log").open("wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
        try:
            _wait_for(port, process, directory / "broker.log")
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        assert process.poll() is None, log.read_text()[-2000:]
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-2000:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Kafka:
    """A broker, and Kafka's client in Java."""

    def __init__(self, servers: str, directory: Path) -> None:
        self.servers = servers
        self._classes = os.pathsep.join([str(directory), *jars("broker")])
        source = directory / "Client.java"
        source.write_text(CLIENT)
        subprocess.run(["javac", "-cp", self._classes, "-d", str(directory), str(source)], check=True)

    def create(self, *topics: str) -> None:
        self._client("create", *topics)

    def send(self, records: Iterable[tuple[str, str, str | None]]) -> None:
        lines = (f"{topic}\t{key}\t{'NULL' if value is None else value}" for topic, key, value in records)
        self._client("send", text="\n".join(lines))

    def read(self, topic: str) -> list[tuple[int, dict[str, Any], dict[str, Any]]]:
        """Partition, key and value of all records, each partition's in order."""
        lines = [line.split("\t") for line in self._client("read", topic).splitlines()]
        return [(int(partition), json.loads(key), json.loads(value)) for partition, key, value in lines]

    def _client(self, *arguments: str, text: str = "") -> str:
        command = [*JAVA, "-cp", self._classes, "Client", self.servers, *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout
