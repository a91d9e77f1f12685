"""Boxes of routers on a torus: geometry, shapes, and free boxes."""
