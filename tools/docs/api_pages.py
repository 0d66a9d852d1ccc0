"""The pages of the API reference: every public name, on the page of the part that it belongs to.

A name goes where its module says, so a new one needs nothing here unless it comes from a new part of the package.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "rankwood"


@dataclass(frozen=True)
class Group:
    """A page: its file, its title, a sentence, and the modules whose public names it shows."""

    name: str
    title: str
    intro: str
    modules: tuple[str, ...]
    first: tuple[str, ...] = ()  # names that open the page
    inherited: tuple[str, ...] = ()  # members of base classes that are shown, of the first name only
    also: tuple[str, ...] = ()  # what is reached by its module alone, as other tools want it


GROUPS = (
    Group("data", "Data", "Ranking data in memory, in files, and made up.", ("rankwood.data",)),
    Group(
        "learners",
        "Learners",
        "scikit-learn estimators that return an [`Ensemble`][rankwood.Ensemble] as `ensemble_`, and what goes with "
        "training. [Training](../training.md) has the parameters in one table. All learners have the methods that are "
        "shown with the first.",
        ("rankwood.training",),
        ("LambdaMART", "MART", "DART", "XDART", "RandomForest"),
        ("fit", "predict", "score", "feature_importances_", "n_trees_"),
    ),
    Group(
        "models",
        "Models and scoring",
        "The model object, and the engines that score it. See [scoring](../scoring.md).",
        (
            "rankwood.model.ensemble",
            "rankwood.model.early_exit",
            "rankwood.model.additive",
            "rankwood.model.trees",
            "rankwood.scoring",
            "rankwood.model.visits",
            "rankwood.model.topology",
        ),
    ),
    Group(
        "evaluation",
        "Evaluation",
        "Measures, conventions, tests of significance, and what a model is made of. See [measures](../measures.md).",
        ("rankwood.evaluation",),
    ),
    Group(
        "explaining",
        "Explaining",
        "What features add to scores, and trees as tables, text and drawings. See [explaining](../explaining.md).",
        ("rankwood.explaining",),
    ),
    Group(
        "fitting",
        "Fitting",
        "Leaf values of all trees at once. See [training](../training.md#fitting-all-leaves-at-once).",
        ("rankwood.fitting",),
    ),
    Group(
        "shrinking",
        "Shrinking",
        "Models made several times smaller. See [shrinking](../shrinking.md) and [early exit](../early-exit.md).",
        ("rankwood.shrinking",),
    ),
    Group(
        "pruning", "Pruning", "CLEaVER and what was added to it. See [pruning](../pruning.md).", ("rankwood.pruning",)
    ),
    Group(
        "formats",
        "Formats",
        "Models of other tools, in and out. See [importing](../formats.md) and [exporting](../exporting.md).",
        ("rankwood.formats",),
    ),
    Group(
        "verification",
        "Verification",
        "Do two models score alike? See [verification](../verify.md).",
        ("rankwood.verification",),
    ),
    Group(
        "studies",
        "Studies and reports",
        "Experiments, searches and reports. The studies of papers are commands: [`rankwood reproduce`](../studies.md).",
        ("rankwood.lab",),
    ),
    Group(
        "integrations",
        "Other tools",
        "Callbacks and homes in other tools. See [with Optuna, MLflow and others](../integrations.md). Functions of "
        "MLflow's flavour are those of the module `rankwood.integrations.mlflow`.",
        ("rankwood.integrations",),
        also=tuple(
            f"rankwood.integrations.mlflow.{name}" for name in ("save_model", "log_model", "load_model", "log_measures")
        ),
    ),
    Group("errors", "Errors", "What goes wrong is one of these, with one sentence.", ("rankwood.errors",)),
)


def public_names(package: Path = PACKAGE) -> dict[str, str]:
    """Public names and their modules, read from the source: nothing is imported."""
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "_HOME_OF":
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    raise LookupError("rankwood/__init__.py has no _HOME_OF")


def names_of(group: Group, names: Mapping[str, str]) -> list[str]:
    """Public names of a group: `first`, other classes, then functions, each kind in the order of `names`."""
    mine = [name for name, home in names.items() if any(f"{home}.".startswith(f"{m}.") for m in group.modules)]
    opening = [name for name in group.first if name in mine]
    return opening + sorted((n for n in mine if n not in opening), key=lambda name: not name[0].isupper())


def pages(names: Mapping[str, str] | None = None) -> dict[str, str]:
    """Markdown of every page by its path under docs; a group without names has a page that says so."""
    names = public_names() if names is None else names
    made: dict[str, str] = {}
    for group in GROUPS:
        mine = names_of(group, names)
        parts = [f"# {group.title}", group.intro, *(_entry(name, group) for name in mine)]
        parts += [f"::: {path}" for path in group.also]
        made[f"reference/{group.name}.md"] = "\n\n".join(parts) + "\n"
    made["reference/index.md"] = _index(names)
    return made


def _entry(name: str, group: Group) -> str:
    shown = group.inherited if name in group.first[:1] else ()
    members = f"\n    options:\n      inherited_members: [{', '.join(shown)}]" if shown else ""
    return f"::: rankwood.{name}{members}"


def _index(names: Mapping[str, str]) -> str:
    lines = ["# API reference", "Everything is reached as `rankwood.NAME`, and imported on first use."]
    lines.append("| | |\n| --- | --- |")
    for group in GROUPS:
        links = ", ".join(f"[`{name}`][rankwood.{name}]" for name in names_of(group, names))
        lines[-1] += f"\n| [{group.title}]({group.name}.md) | {links or '(commands)'} |"
    lines.append("The commands have [a page of their own](commands.md).")
    return "\n\n".join(lines) + "\n"
