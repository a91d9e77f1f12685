"""The queues of a site: blocked jobs and their reservations, backfilling, node lines."""
