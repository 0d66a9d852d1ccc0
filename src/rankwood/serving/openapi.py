"""The description of the HTTP interface in OpenAPI, of the models that are served now."""

from __future__ import annotations

from typing import Any

from rankwood._version import __version__
from rankwood.serving.batch import Limits
from rankwood.serving.json_bodies import MAX_TOP
from rankwood.serving.served import Served

JSON = "application/json"
ARROW = {
    "application/vnd.apache.arrow.stream": "Arrow IPC stream",
    "application/vnd.apache.arrow.file": "Arrow IPC file",
}
LARGEST = 1.7976931348623157e308
ERRORS = {
    400: "The body is not what its Content-Type says.",
    401: "The token is missing or wrong.",
    404: "There is no such model or path.",
    408: "The body took too long to arrive.",
    413: "The body is too large, or has too many rows.",
    415: "The body is of a type that is not taken, or compressed.",
    422: "The body asks for what the model cannot do: other features, wrong numbers of rows.",
    500: "A defect of the server.",
    503: "The server is busy, stops, or could not score in time.",
}


def description(models: list[Served], limits: Limits, *, admin: bool) -> dict[str, Any]:
    """The document that `GET /openapi.json` answers with."""
    paths: dict[str, Any] = {
        "/health": {"get": _get("Whether the process answers.", "Status")},
        "/ready": {"get": _get("Whether requests are taken; 503 from the first signal to stop on.", "Status", 503)},
        "/metrics": {"get": _plain_get("Counts and latencies for Prometheus.", "text/plain")},
        "/openapi.json": {"get": _plain_get("This description.", JSON)},
        "/models": {"get": _get("Facts of all models.", "Models")},
    }
    for served in models:
        path = f"/models/{served.name}"
        paths[path] = {"get": _get(f"Facts of model {served.name}.", "Model", 404)}
        if admin:
            paths[path]["put"] = _put(served)
        paths[f"{path}/score"] = {"post": _post(served, limits)}
    if len(models) == 1:
        paths["/score"] = {"post": _post(models[0], limits)}
    schemas = {
        "Error": _object({"error": {"type": "string"}}),
        "Status": _object({"status": {"type": "string"}}),
        "Scores": _scores(),
        "Model": _model(),
        "Models": _object({"models": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}),
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "rankwood serve",
            "version": __version__,
            "description": "Scores of tree rankers, with the bits that rankwood's Ensemble.score gives in Python.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if admin:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return document


def _get(summary: str, schema: str, *errors: int) -> dict[str, Any]:
    return {"summary": summary, "responses": _answers({JSON: _reference(schema)}, *errors)}


def _plain_get(summary: str, kind: str) -> dict[str, Any]:
    return {"summary": summary, "responses": _answers({kind: {}})}


def _post(served: Served, limits: Limits) -> dict[str, Any]:
    kinds: dict[str, Any] = {JSON: {"schema": request_schema(served, limits)}}
    kinds |= {kind: {"schema": {"description": f"{name} with a column per feature"}} for kind, name in ARROW.items()}
    answers: dict[str, Any] = {JSON: _reference("Scores")}
    answers |= {kind: {"schema": {"description": f"{name} with a column score"}} for kind, name in ARROW.items()}
    return {
        "summary": f"Scores of documents by model {served.name}.",
        "requestBody": {"required": True, "content": kinds},
        "responses": _answers(answers, 400, 404, 408, 413, 415, 422, 503),
    }


def _put(served: Served) -> dict[str, Any]:
    return {
        "summary": f"Serve the model file in the body as {served.name} from now on.",
        "security": [{"token": []}],
        "requestBody": {"required": True, "content": {"application/octet-stream": {}}},
        "responses": _answers({JSON: _reference("Model")}, 400, 401, 404, 408, 413, 415, 422, 503),
    }


def _answers(content: dict[str, Any], *errors: int) -> dict[str, Any]:
    answers: dict[str, Any] = {"200": {"description": "As asked for.", "content": content}}
    for status in (*errors, 500):
        answers[str(status)] = {"description": ERRORS[status], "content": {JSON: _reference("Error")}}
        if status == 503:
            answers["503"]["headers"] = {"Retry-After": {"schema": {"type": "string"}}}
        if status == 401:
            answers["401"]["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return answers


def request_schema(served: Served, limits: Limits) -> dict[str, Any]:
    """What JSON a request for scores may be: by this model's features."""
    model = served.model
    value = {"type": ["number", "null"], "minimum": -LARGEST, "maximum": LARGEST}
    row: dict[str, Any] = {"type": "array", "items": value, "minItems": model.n_features}
    if not served.is_open:
        row["maxItems"] = model.n_features
    many: dict[str, Any] = {"type": "array", "maxItems": limits.rows}
    shapes: dict[str, Any] = {"rows": many | {"items": row}}
    if model.feature_names is not None:
        by_name = _object(dict.fromkeys(model.feature_names, value))
        columns = _object(dict.fromkeys(model.feature_names, many | {"items": value}))
        shapes = {"rows": {"anyOf": [many | {"items": row}, many | {"items": by_name}]}, "columns": columns}
    ids, sizes = {"type": ["integer", "string"]}, {"type": "integer", "minimum": 1}
    others = {
        "qid": {"type": ["array", "null"], "items": ids, "description": "query of each row"},
        "group": {"type": ["array", "null"], "items": sizes, "description": "rows of consecutive queries"},
        "top": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_TOP, "description": "how many to order"},
        "dtype": {"enum": ["float32", "float64"], "description": "what values are rounded to before scoring"},
    }
    kinds = [
        {
            "type": "object",
            "properties": {key: shape} | others,
            "required": [key],
            "additionalProperties": False,
        }
        for key, shape in shapes.items()
    ]
    return kinds[0] if len(kinds) == 1 else {"oneOf": kinds}


def _scores() -> dict[str, Any]:
    row = {"type": "integer", "minimum": 0}
    return _object(
        {
            "model": {"type": "string"},
            "fingerprint": {"type": "string"},
            "scores": {"type": "array", "items": {"type": "number"}, "description": "one per row"},
            "order": {
                "type": "array",
                "items": {"type": "array", "items": row},
                "description": "rows of the best documents of each query, the best first; if top was given",
            },
        },
        optional=("order",),
    )


def _model() -> dict[str, Any]:
    count = {"type": "integer", "minimum": 0}
    return _object(
        {
            "name": {"type": "string"},
            "trees": count,
            "leaves": count,
            "features": count,
            "more_features_allowed": {"type": "boolean"},
            "feature_names": {"type": ["array", "null"], "items": {"type": "string"}},
            "early_exit": {"type": ["object", "null"]},
            "fingerprint": {"type": "string"},
            "loaded": {"type": "string", "format": "date-time"},
        }
    )


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _reference(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}}
