"""Yang et al. 2014: window-based locality-aware scheduling."""
