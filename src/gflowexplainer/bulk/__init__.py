"""Explains very many instances on many processes or machines, with Ray Data, into Parquet files."""

from gflowexplainer.bulk.engine import BulkResult, explain_in_bulk
from gflowexplainer.bulk.rows import read_rows
from gflowexplainer.bulk.worker import Source

__all__ = ["BulkResult", "Source", "explain_in_bulk", "read_rows"]
