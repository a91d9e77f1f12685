"""The study of Li et al. 2015: boxes on a torus, proactive scanning of the queue, migration."""
