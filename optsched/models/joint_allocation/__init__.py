"""Joint allocation: which waiting jobs start now on nodes with shared resources, and where."""

from optsched.models.joint_allocation.problem import JointAllocation, JointPlacement

__all__ = ["JointAllocation", "JointPlacement"]
