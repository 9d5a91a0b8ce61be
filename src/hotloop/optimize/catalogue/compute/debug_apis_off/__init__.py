"""debug_apis_off: anomaly detection, NVTX ranges, legacy profilers and gradcheck made inert."""
