"""Settings of policies that make no sense."""

import math

import pytest

from optsched import registry
from optsched.errors import InputError

REFUSED = {
    "gang": {"mpl": [0], "window": [0], "time_slice": [0, 1e10], "context_switch": [-1, 60]},
    "locality": {"weight": [-1], "threshold": [-1], "throttle": [-1]},
    "placement": {"window": [0], "interval": [-1.0]},
    "rua": {"thresholds": ["", "a", "1.15,", "0.9,1.2", "1e18", "nan"]},
    "sjbf": {"threshold": [0.5, -1, 1001, math.nan, math.inf]},
    "torus": {"depth": [0], "interval": [-1], "moves": [-1], "preparations": [0]}
    | {"large": [0], "worth": [-1, 10**7 + 1]},
    "window": {"window": [0], "interval": [-1]},
}


@pytest.mark.parametrize(
    ("policy", "setting", "value"),
    [
        (policy, setting, value)
        for policy, settings in REFUSED.items()
        for setting, values in settings.items()
        for value in values
    ],
)
def test_a_setting_out_of_range_is_refused_with_what_was_expected(policy, setting, value):
    expected = "expected (a whole number|seconds|a factor|factors) (from|above)"
    with pytest.raises(InputError, match=f"{setting.replace('_', ' ')} .*; {expected}"):
        registry.policies[policy](**{setting: value})
