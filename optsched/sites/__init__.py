"""Sites: nodes with countable resources, features, partitions and a topology."""
