"""Run by the new environment's Python: vLLM imports, knows itself, and runs on the CPU."""

import sys
from importlib.metadata import version

import vllm
from vllm.platforms import current_platform

print(f"vllm {vllm.__version__}, known as {version('vllm')}, on {current_platform.device_type}")
if current_platform.device_type != "cpu":
    sys.exit("vLLM does not take this environment for its CPU build")
