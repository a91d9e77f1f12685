"""All systems on the same jobs: what each of them gains and costs."""
