"""Choose where a session's queries run: in Spark's JVM if possible, otherwise in Python workers."""

from __future__ import annotations

from pyspark.sql import SparkSession

from crown.spark.flow import jvm
from crown.spark.flow.operators import Flow
from crown.spark.flow.python import PythonFlow
from crown.spark.flow.rejects import Rejects
from crown.spark.required import ENGINE, engine_of


def chosen_flow(spark: SparkSession, rejects: Rejects | None = None) -> Flow:
    match engine_of(spark.conf.get(ENGINE, None)):
        case "jvm":
            return jvm.JvmFlow.of(spark, rejects)
        case "python":
            return PythonFlow(rejects)
    return jvm.JvmFlow.of(spark, rejects) if jvm.possible(spark) else PythonFlow(rejects)
