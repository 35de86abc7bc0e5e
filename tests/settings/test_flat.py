"""Flat settings and comparisons."""

from dataclasses import replace

from higl.settings.config import Config, LowConfig
from higl.settings.flat import differences, differing, flat, flat_config, nested


def test_nested_is_the_inverse_of_flat():
    layer = {"seed": 3, "low.angles": [8, 4], "low.discount": 0.5, "landmarks.start": 7}
    assert flat(nested(layer)) == layer
    assert nested({"low.discount": 0.5, "seed": 3}) == {"low": {"discount": 0.5}, "seed": 3}


def test_flat_config_has_every_setting():
    values = flat_config(Config(seed=4, low=LowConfig(angles=(7,))))
    assert (values["seed"], values["low.angles"], values["low.discount"]) == (4, (7,), LowConfig().discount)
    assert "low" not in values


def test_differing_compares_any_number_of_configurations_and_layers():
    config = Config()
    other = replace(config, seed=2, low=replace(config.low, discount=0.5))
    assert differing(config, config) == []
    assert differing(config, other) == ["seed", "low.discount"]
    assert differing(config, other, leave_out=("seed",)) == ["low.discount"]
    assert differing({"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1, "c": 3}) == ["b", "c"]
    assert differing() == []


def test_differences_as_text():
    assert differences(Config(), replace(Config(), seed=2), ["seed"]) == ["seed = 0 -> 2"]
    wide = replace(Config(), hidden=(400, 300))
    assert differences(Config(), wide, ["hidden"]) == ["hidden = [300, 300] -> [400, 300]"]
