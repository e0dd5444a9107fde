"""Choose where a session's queries run: in Spark's JVM if possible, otherwise in Python workers."""

from __future__ import annotations

from pyspark.sql import SparkSession

from crown.errors import PlanError
from crown.spark.flow import jvm
from crown.spark.flow.operators import Flow
from crown.spark.flow.python import PythonFlow
from crown.spark.flow.rejects import Rejects
from crown.spark.settings import ENGINE


def chosen_flow(spark: SparkSession, rejects: Rejects | None = None) -> Flow:
    match spark.conf.get(ENGINE, None):
        case "jvm":
            return jvm.JvmFlow.of(spark, rejects)
        case "python":
            return PythonFlow(rejects)
        case None | "":
            return jvm.JvmFlow.of(spark, rejects) if jvm.possible(spark) else PythonFlow(rejects)
        case other:
            raise PlanError(
                f"{ENGINE} is {other!r}", code="CROWN-SPARK-SETTING", hint='"jvm" or "python"; unset, Crown chooses'
            )
