"""Parts that several policies share: reservations, profiles of free processors, fits on a torus."""
