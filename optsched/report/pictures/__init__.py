"""The pictures of a run, one file each: how it is drawn, its caption and its numbers in words."""
