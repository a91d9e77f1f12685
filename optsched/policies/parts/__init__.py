"""Parts of several policies: reservations, availability profiles, fitting on a torus."""
