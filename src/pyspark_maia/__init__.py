"""`spark.read.format("maia")`: Spark finds the data source by this module's name."""

from maia.spark import DefaultSource as DefaultSource
