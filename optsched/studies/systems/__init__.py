"""All systems on the same jobs: what each of them gains and costs."""

from optsched.studies.systems.study import Systems as Systems
