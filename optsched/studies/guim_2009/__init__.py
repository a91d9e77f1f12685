"""The study of Guim, Rodero and Corbalan 2009: jobs that share the memory bandwidth of nodes."""
