"""Solvers of gang packing (`optsched.models.gang_packing`)."""
