"""Whether a deployment answers as it should: GSM8K as lm-evaluation-harness has it."""

from e2e.oracle.evaluation import Questions, evaluate, questions

__all__ = ["Questions", "evaluate", "questions"]
