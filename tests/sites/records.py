"""A node as Slurm shows it in JSON."""

NODE = {"name": "g1", "cpus": 64, "effective_cpus": 60, "threads": 2, "alloc_cpus": 8, "weight": 20}
NODE |= {"real_memory": 1000, "specialized_memory": 100, "alloc_memory": 300}
NODE |= {"state": ["MIXED", "PLANNED"], "active_features": ["ib"], "features": ["ib", "off"]}
NODE |= {"partitions": ["batch"], "gres": "gpu:a100:4(S:0-1),gpu:h100:2"}
NODE |= {"gres_used": "gpu:a100:1(IDX:2),gpu:h100:0(IDX:N/A)", "gres_drained": "gpu:a100:2"}
