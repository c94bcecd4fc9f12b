"""Profile x case x environment -> CasePlan: what will be run and checked, exactly. No I/O."""

from e2e.plan.case import AfdPlan, CasePlan, plan_case
from e2e.plan.evaluation import EvaluationPlan, ParityPlan
from e2e.plan.load import LoadPlan
from e2e.plan.performance import Measurement, plan_performance
from e2e.plan.role import Role, RolePlan

__all__ = [
    "AfdPlan",
    "CasePlan",
    "EvaluationPlan",
    "LoadPlan",
    "Measurement",
    "ParityPlan",
    "Role",
    "RolePlan",
    "plan_case",
    "plan_performance",
]
