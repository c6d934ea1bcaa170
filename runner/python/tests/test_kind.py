"""Stage kinds of packages: what a declaration says of itself, and the settings that its function is given."""

import datetime
import enum
import json
import sys
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, Union

import pytest

from runner import kind
from runner._kind import arguments, describe


class Model(enum.Enum):
    SVI = "svi"
    SABR = "sabr"


@dataclass
class Band:
    low: float
    high: float = 1.0


@dataclass
class Surface:
    """A surface of implied volatility.

    More of it.
    """

    must: int
    window: Annotated[int, "Days."] = 20
    scale: float = field(default=1.0, metadata={"doc": "Times."})
    model: Model = Model.SVI
    side: Literal["call", "put"] = "call"
    first: Optional[datetime.date] = None
    band: Band = field(default_factory=lambda: Band(0.5))
    pair: tuple[int, str] = (1, "a")
    many: list[Band] = field(default_factory=list)
    named: dict[str, float] = field(default_factory=dict)
    either: Union[int, str] = 3


@kind(
    "surface",
    inputs={"chain": "option_chain", "rates": {"type": "rates", "optional": True}, "factors": {"type": "features", "list": True}},
    outputs={"features": "features"},
    version=2,
)
def surface(ctx: Any, chain: Any, rates: Any, factors: Any, settings: Surface) -> None: ...


@kind("plain", outputs={"numbers": {"type": "metrics", "doc": "Numbers."}})
def plain(ctx: Any) -> None:
    """Writes numbers."""


kinds = [surface, plain]


def described() -> list[dict[str, Any]]:
    return json.loads(describe(None, __name__, "kinds"))["kinds"]


def test_a_declaration_describes_itself():
    first, second = described()
    assert (first["name"], first["version"], first["about"]) == ("surface", 2, "A surface of implied volatility.")
    assert first["call"] == f"{__name__}:surface"
    assert first["inputs"][1] == {"name": "rates", "type": "rates", "optional": True, "list": False, "doc": ""}
    assert second["about"] == "Writes numbers."
    assert second["outputs"] == [{"name": "numbers", "type": "metrics", "doc": "Numbers."}]
    assert second["schema"]["properties"] == {}
    schema = first["schema"]
    assert schema["required"] == ["must"]
    fields = schema["properties"]
    assert fields["window"] == {"type": "integer", "description": "Days.", "default": 20}
    assert fields["scale"] == {"type": "number", "description": "Times.", "default": 1.0}
    assert fields["model"] == {"enum": ["svi", "sabr"], "default": "svi"}
    assert fields["band"]["default"] == {"low": 0.5, "high": 1.0}
    assert fields["band"]["required"] == ["low"]
    assert fields["first"]["anyOf"][0] == {"type": "string", "format": "date"}
    assert fields["pair"]["items"] == [{"type": "integer"}, {"type": "string"}]


def test_a_function_is_given_objects():
    defaults = {name: field["default"] for name, field in described()[0]["schema"]["properties"].items() if "default" in field}
    given = arguments(surface, {"chain": 1, "factors": 2}, {**defaults, "must": 4})
    assert given == {"chain": 1, "rates": None, "factors": [2], "settings": Surface(4)}
    own = {"first": "2020-01-02", "model": "sabr", "band": {"low": 1}, "many": [{"low": 2.0, "high": 3.0}], "either": "x", "named": {"a": 1}}
    given = arguments(surface, {"chain": 1, "factors": {"seed=1": 2, "seed=2": 3}}, {**defaults, **own, "must": 4})
    expected = Surface(
        4, first=datetime.date(2020, 1, 2), model=Model.SABR, band=Band(1.0), many=[Band(2.0, 3.0)], either="x", named={"a": 1.0}
    )
    assert given["settings"] == expected
    assert given["factors"] == [2, 3]


def test_a_type_without_a_form_is_refused():
    @dataclass
    class Odd:
        values: set[int] = field(default_factory=set)

    def odd(ctx, settings): ...

    odd.__annotations__["settings"] = Odd
    module = sys.modules[__name__]
    module.odd = [kind("odd", outputs={"a": "metrics"})(odd)]
    with pytest.raises(TypeError, match="has no form in a pipeline file"):
        describe(None, __name__, "odd")


def test_models_of_pydantic_are_settings():
    pydantic = pytest.importorskip("pydantic")

    class Settings(pydantic.BaseModel):
        "Of pydantic."

        days: int = pydantic.Field(3, description="Days.", ge=1)
        names: list[str] = pydantic.Field(default_factory=lambda: ["a"])

    def model(ctx, settings): ...

    model.__annotations__["settings"] = Settings
    module = sys.modules[__name__]
    module.model = [kind("model", outputs={"a": "metrics"})(model)]
    one = json.loads(describe(None, __name__, "model"))["kinds"][0]
    assert one["about"] == "Of pydantic."
    days, names = one["schema"]["properties"]["days"], one["schema"]["properties"]["names"]
    assert (days["minimum"], days["default"], days["description"]) == (1, 3, "Days.")
    assert names["default"] == ["a"]
    assert arguments(model, {}, {"days": 5})["settings"] == Settings(days=5)
