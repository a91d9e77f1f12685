"""The integer program: any pure integer linear program, from MPS, LP and OR-Library files."""

from optsched.models.integer_program.problem import IntegerProgram, Values

__all__ = ["IntegerProgram", "Values"]
