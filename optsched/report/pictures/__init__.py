"""Pictures of a run, one file each: drawing, caption, and numbers in words."""
