"""The study of Li et al. 2015: boxes on a torus, proactive scanning of the queue, migration."""

from optsched.studies.li_2015.study import Li2015 as Li2015
