"""Stage kinds of an installed package: their declaration, and their description as JSON. See docs/guides/own-kinds.md.

Where the stage's interpreter has no package `runner`, the driver of Python stages brings this file as the module `runner_kinds`. It runs on any
Python from 3.9 on.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib
import inspect
import json
import types
import typing
from typing import Any, Callable, TypeVar, Union

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__runner_kind__"

_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_UNIONS = (Union, getattr(types, "UnionType", Union))


def kind(
    name: str,
    *,
    inputs: dict[str, Any] | None = None,
    outputs: dict[str, Any] | None = None,
    version: int = 1,
) -> Callable[[F], F]:
    """Declares a function as the stage kind `PREFIX/name` of its package. The function itself is not changed.

    It is called with a context, the inputs by name, and `settings`, whose annotation is a dataclass or a pydantic model: its fields are the keys of `with:`.

    Args:
        name: lowercase letters, digits and `_`.
        inputs: the types of the inputs by name, such as `{"chain": "option_chain"}`, or `{"type": "rates", "optional": True, "list": True, "doc": "…"}`.
        outputs: the types of the outputs by name, likewise.
        version: part of the key, as the text of the package is.
    """
    mark = {"name": name, "inputs": dict(inputs or {}), "outputs": dict(outputs or {}), "version": version}

    def declare(function: F) -> F:
        setattr(function, MARK, mark)
        return function

    return declare


def describe(ctx: Any, module: str, attribute: str) -> str:
    """The kinds of an entry point `module:attribute`, a list of functions or a module of them, as JSON."""
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    if isinstance(found, types.ModuleType):
        found = [value for value in vars(found).values() if hasattr(value, MARK)]
    if not isinstance(found, (list, tuple)):
        raise TypeError(f"`{module}:{attribute}` is a {type(found).__qualname__}, not a list of functions")
    return json.dumps({"kinds": [_described(function) for function in found]}, allow_nan=False)


def arguments(function: Any, inputs: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a kind's function: its inputs, and its settings as an object of their class."""
    given = {}
    for port in _ports(getattr(function, MARK)["inputs"]):
        value = inputs.get(port["name"])
        if port["list"]:
            value = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
            value = [each for each in value if each is not None]
        given[port["name"]] = value
    cls = _settings(function)
    if cls is not None:
        given["settings"] = _build(cls, settings)
    return given


def _described(function: Any) -> dict[str, Any]:
    mark = getattr(function, MARK, None)
    if mark is None or not callable(function):
        raise TypeError(f"{function!r} is not a function that `@kind` declares")
    cls = _settings(function)
    schema = {"type": "object", "properties": {}} if cls is None else _schema(cls)
    about = _doc(function) or (_doc(cls) if cls is not None else "")
    return {
        "name": mark["name"],
        "version": mark["version"],
        "about": about,
        "call": f"{function.__module__}:{function.__qualname__}",
        "inputs": _ports(mark["inputs"]),
        "outputs": [{key: port[key] for key in ("name", "type", "doc")} for port in _ports(mark["outputs"])],
        "schema": schema,
    }


def _ports(ports: dict[str, Any]) -> list[dict[str, Any]]:
    plain = {"optional": False, "list": False, "doc": ""}
    return [{"name": name, **plain, **({"type": port} if isinstance(port, str) else port)} for name, port in ports.items()]


def _settings(function: Any) -> Any:
    """The class of the parameter `settings`; None where there is no such parameter."""
    if "settings" not in inspect.signature(function).parameters:
        return None
    cls = typing.get_type_hints(function).get("settings")
    if not (dataclasses.is_dataclass(cls) or hasattr(cls, "model_json_schema")):
        raise TypeError(f"`settings` of `{function.__qualname__}` is not annotated with a dataclass or a pydantic model")
    return cls


def _doc(item: Any) -> str:
    """The first paragraph of a docstring, without the one that a dataclass gives itself."""
    doc = inspect.cleandoc(vars(item).get("__doc__") or getattr(item, "__doc__", None) or "")
    made = isinstance(item, type) and doc.startswith(item.__name__ + "(")
    return "" if made else " ".join(doc.split("\n\n")[0].split())


def _schema(tp: Any) -> dict[str, Any]:
    """The JSON Schema of a type."""
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if hasattr(tp, "__metadata__"):
        schema = _schema(args[0])
        for note in tp.__metadata__:
            doc = note if isinstance(note, str) else getattr(note, "description", None) or getattr(note, "documentation", None)
            if isinstance(doc, str):
                schema["description"] = doc
            for name, key in _BOUNDS.items():
                if getattr(note, name, None) is not None:
                    schema[key] = getattr(note, name)
        return schema
    if tp is Any:
        return {}
    if tp in _PLAIN:
        return {"type": _PLAIN[tp]}
    if tp is datetime.date:
        return {"type": "string", "format": "date"}
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in _UNIONS:
        return {"anyOf": [_schema(arg) for arg in args]}
    if origin is tuple and not (len(args) == 2 and args[1] is ...):
        return {"type": "array", "items": [_schema(arg) for arg in args], "minItems": len(args), "maxItems": len(args)}
    if origin in (list, tuple):
        return {"type": "array", "items": _schema(args[0])}
    if origin is dict and args[0] is str:
        return {"type": "object", "additionalProperties": _schema(args[1])}
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        return {"enum": [member.value for member in tp]}
    if hasattr(tp, "model_json_schema"):
        return _of_model(tp)
    if dataclasses.is_dataclass(tp):
        return _of_dataclass(tp)
    raise TypeError(f"the type `{tp}` of a setting has no form in a pipeline file: use numbers, text, dates, lists, dictionaries, enums and dataclasses")


def _of_dataclass(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls, include_extras=True)
    properties, required = {}, []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        schema = _schema(hints[field.name])
        if "doc" in field.metadata:
            schema["description"] = field.metadata["doc"]
        if field.default is not dataclasses.MISSING:
            schema["default"] = _json(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            schema["default"] = _json(field.default_factory())
        else:
            required.append(field.name)
        properties[field.name] = schema
    return {"type": "object", "properties": properties, "required": required}


def _of_model(cls: Any) -> dict[str, Any]:
    """The schema of a pydantic model, with the defaults that factories give."""
    schema = cls.model_json_schema()
    for name, field in cls.model_fields.items():
        shown = schema["properties"].get(field.alias or name)
        if shown is not None and not field.is_required():
            shown["default"] = _json(field.get_default(call_default_factory=True))
    return schema


def _json(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _json(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [_json(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _json(each) for key, each in value.items()}
    return value


def _build(tp: Any, value: Any) -> Any:
    """The value of a type from its JSON form, the inverse of `_json`; it has been checked against the schema."""
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if hasattr(tp, "__metadata__"):
        return _build(args[0], value)
    if origin in _UNIONS:
        return _first(args, value)
    if origin is tuple:
        return tuple(_build(args[0] if args[1:] == (...,) else args[i], each) for i, each in enumerate(value))
    if origin is list:
        return [_build(args[0], each) for each in value]
    if origin is dict:
        return {key: _build(args[1], each) for key, each in value.items()}
    if hasattr(tp, "model_validate"):
        return tp.model_validate(value)
    if dataclasses.is_dataclass(tp):
        hints = typing.get_type_hints(tp, include_extras=True)
        return tp(**{name: _build(hints[name], each) for name, each in value.items()})
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        return tp(value)
    if tp is datetime.date:
        return datetime.date.fromisoformat(value)
    if tp is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if tp in _PLAIN and (not isinstance(value, tp) or (tp is int and isinstance(value, bool))):
        raise TypeError(f"{value!r} is not of the type `{tp.__name__}`")
    if origin is typing.Literal and value not in args:
        raise ValueError(f"{value!r} is none of {args}")
    return value


def _first(choices: tuple[Any, ...], value: Any) -> Any:
    """The value as the first type of a union that takes it."""
    for choice in choices:
        try:
            return _build(choice, value)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    raise TypeError(f"{value!r} is of none of the types {choices}")
