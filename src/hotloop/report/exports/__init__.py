"""Raw samples and timelines for other tools: CSV, Parquet, TensorBoard, Perfetto.

In: a `ReportContent`. Out: tables and documents, ready to be written.
"""
