"""The Hugging Face Hub: a model as a repository of its file and a card.

`Ensemble.save_pretrained`, `push_to_hub` and `from_pretrained` call these functions.
"""

from __future__ import annotations

import html
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwood._version import __version__
from rankwood.atomic import atomic_write
from rankwood.errors import ModelError, RankwoodError, one_line
from rankwood.packages import need
from rankwood.printable import printable

if TYPE_CHECKING:
    from rankwood.model.ensemble import Ensemble

MODEL_FILE, CARD_FILE = "model.safetensors", "README.md"
TAGS = ("learning-to-rank", "ranking", "tree-ensemble", "rankwood")


def save_folder(model: Ensemble, folder: str | os.PathLike[str], name: str, **about: Any) -> None:
    """Write the model and its card to a folder, which is made.

    Parameters
    ----------
    model : Ensemble
        The model.
    folder : path-like
        Where to; files of the same names are replaced.
    name : str
        What the card calls the model, and loads it by.
    **about
        As for `card`.
    """
    text = card(model, name, **about)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    model.save(place / MODEL_FILE)
    with atomic_write(place / CARD_FILE, "w") as file:
        file.write(text)


def push(
    model: Ensemble, repo_id: str, *, private: bool | None, token: str | None, message: str | None, **about: Any
) -> str:
    """Upload the model and its card to a repository of the Hub, which is made unless it is there.

    Parameters
    ----------
    model : Ensemble
        The model.
    repo_id : str
        `OWNER/NAME`.
    private, token, message
        As for `Ensemble.push_to_hub`.
    **about
        As for `card`.

    Returns
    -------
    str
        Address of the commit.
    """
    hub = need("huggingface_hub", "pushing a model to the Hugging Face Hub")
    with tempfile.TemporaryDirectory() as folder, _told(f"{one_line(repo_id)} cannot be pushed to"):
        save_folder(model, folder, repo_id, **about)
        api = hub.HfApi(token=token, library_name="rankwood", library_version=__version__)
        made = api.create_repo(repo_id, private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=getattr(made, "repo_id", repo_id),  # with the owner, where only a name was given
            folder_path=folder,
            commit_message=message or f"{model.n_trees} trees, {model.n_leaves} leaves",
        )
    return str(getattr(commit, "commit_url", commit))


def fetch(repo_or_folder: str | os.PathLike[str], *, revision: str | None, token: str | None) -> Path:
    """The model file of a folder, or of a repository of the Hub, which is downloaded unless it is there.

    Parameters
    ----------
    repo_or_folder, revision, token
        As for `Ensemble.from_pretrained`.
    """
    folder = Path(repo_or_folder)
    if folder.is_dir():
        return folder / MODEL_FILE
    hub = need("huggingface_hub", f"{one_line(str(repo_or_folder))} is no folder, and fetching it from the Hub")
    with _told(f"{one_line(str(repo_or_folder))} is no folder and cannot be fetched"):
        path = hub.hf_hub_download(
            os.fspath(repo_or_folder),
            MODEL_FILE,
            revision=revision,
            token=token,
            library_name="rankwood",
            library_version=__version__,
        )
    return Path(path)


@contextmanager
def _told(sentence: str) -> Iterator[None]:
    """Errors of the Hub, of names and of the network, which are of many kinds, as one sentence."""
    try:
        yield
    except RankwoodError:
        raise
    except Exception as error:
        raise ModelError(f"{sentence}: {one_line(error, 300)}") from error


def card(
    model: Ensemble,
    name: str,
    *,
    evaluation: Mapping[str, float] | None = None,
    data_name: str = "unnamed data",
    license: str | None = None,
) -> str:
    """The model card: what the Hub reads of it, how to use it, measures, and how it was made.

    Parameters
    ----------
    model : Ensemble
        The model.
    name : str
        What it is called, and loaded by.
    evaluation : Evaluation or mapping from str to float, optional
        Measures of the model.
    data_name : str, default "unnamed data"
        What it was measured on.
    license : str, optional
        Licence, as the Hub names it.
    """
    about: dict[str, Any] = {"library_name": "rankwood", "tags": list(TAGS)}
    if license is not None:
        about["license"] = license
    if evaluation is not None:
        about["model-index"] = [_index(name, evaluation, data_name)]
    parts = [
        "---\n" + "\n".join(f"{key}: {_json(value)}" for key, value in about.items()) + "\n---",  # JSON is YAML
        f"# {_text(name)}",
        f"A tree ranker: {model.n_trees:,} trees with {model.n_leaves:,} leaves over {model.n_features:,} features, "
        f"in the model file of rankwood {__version__} (safetensors: arrays and a JSON header, no code).",
        _use(model, name),
        *([] if evaluation is None else [_measures(evaluation, data_name)]),
        *_made(model),
    ]
    return "\n\n".join(parts) + "\n"


def _index(name: str, evaluation: Mapping[str, float], data_name: str) -> dict[str, Any]:
    """Measures as the Hub shows them beside the card."""
    metrics = [{"type": measure.lower(), "name": measure, "value": value} for measure, value in evaluation.items()]
    task = {"type": "ranking", "name": "Learning to rank"}
    data = {"type": data_name, "name": data_name}
    return {"name": name, "results": [{"task": task, "dataset": data, "metrics": metrics}]}


def _use(model: Ensemble, name: str) -> str:
    exits = ", qid=qid" if model.exit is not None else ""
    code = (
        f"import rankwood as rw\n\nmodel = rw.Ensemble.from_pretrained({_json(name)})\nscores = model.score(X{exits})"
    )
    columns = f"X has {model.n_features:,} columns"
    if model.feature_names is not None:
        columns += (
            f", in this order, or a DataFrame with these names:\n\n```json\n{_json(list(model.feature_names))}\n```"
        )
    else:
        columns += "."
    return f"## Use\n\n```python\n{code}\n```\n\nDocuments of a query are ranked by falling scores. {columns}"


def _measures(evaluation: Mapping[str, float], data_name: str) -> str:
    convention = getattr(getattr(evaluation, "convention", None), "name", None)
    how = "" if convention is None else f", computed by the convention `{_text(convention)}` of rankwood"
    first = next(iter(getattr(evaluation, "per_query", {}).values()), None)
    queries = "" if first is None else f", {len(first):,} queries"
    rows = "\n".join(f"| {_text(measure)} | {value:.4f} |" for measure, value in evaluation.items())
    return f"## Measures\n\nOn {_text(data_name)}{queries}{how}.\n\n| measure | mean |\n| --- | ---: |\n{rows}"


def _made(model: Ensemble) -> list[str]:
    """What the model remembers of its training."""
    notes = model.metadata
    told = {key: notes[key] for key in ("learner", "parameters", "seed", "version") if key in notes}
    return [f"## Training\n\n```json\n{json.dumps(told, indent=1)}\n```"] if told else []


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _text(value: str) -> str:
    """Text that Markdown takes for nothing else, on one line."""
    text = html.escape(printable(str(value)), quote=False)
    return "".join(f"\\{c}" if c in "\\`*_[]|#~" else c for c in text)
