"""Boxes of routers on a torus: their geometry, shapes, and those that are free."""
