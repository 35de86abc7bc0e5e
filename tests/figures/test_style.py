"""Colours."""

from higl.figures.style import lighter, stage_colour, variant_colour


def test_variants_of_an_algorithm_have_different_colours():
    assert variant_colour("higl", 0) == "#0072B2"
    assert len({variant_colour("higl", variant) for variant in range(4)}) == 4


def test_a_lighter_colour_is_lighter_in_every_channel():
    pairs = [(int(lighter("#0072B2")[i : i + 2], 16), int("#0072B2"[i : i + 2], 16)) for i in (1, 3, 5)]
    assert all(light >= dark for light, dark in pairs)
    assert any(light > dark for light, dark in pairs)


def test_an_unknown_stage_is_grey():
    assert stage_colour("something else") == stage_colour("another") != stage_colour("low")
