"""Yang et al. 2014: window-based locality-aware scheduling."""

from optsched.studies.yang_2014.study import Yang2014 as Yang2014
