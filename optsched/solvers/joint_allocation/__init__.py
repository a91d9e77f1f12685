"""Solvers of joint allocation (`optsched.models.joint_allocation`)."""
