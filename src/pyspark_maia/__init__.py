"""`spark.read.format("maia")`, found by Spark itself because of this module's name.

Batch and streaming, reading and writing. The work is done by `maia`; this is the glue between Spark's data source
interface and a domain's home.
"""

from pyspark_maia.delivery import HomePlans, HomeSecret, Wanted, delivery_job, read_subscriptions
from pyspark_maia.source import DefaultSource

__all__ = ["DefaultSource", "HomePlans", "HomeSecret", "Wanted", "delivery_job", "read_subscriptions"]
