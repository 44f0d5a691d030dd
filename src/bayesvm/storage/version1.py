"""Storage: upgrade model files of format version 1 to version 2."""

from __future__ import annotations

from typing import Any


def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """The same model in the current structure. The number of rows, which version 1 did not store, is None.

    Missing or malformed members of the old state lead to an error, or to a state that fails schema validation.
    """
    attributes, tuning = state["attributes"], state.get("tuning")
    binary = len(attributes["classes_"]) == 2
    parameters = state["parameters"]
    return {
        "parameters": parameters,
        "classes": attributes["classes_"],
        "n_features": attributes["n_features_in_"],
        "feature_names": attributes.get("feature_names_in_"),
        "fitted": {
            "head": {"name": "Binary" if binary else "OneVsRest", "rates": state["rates"].tolist()},
            "likelihood": {
                "name": {"exact": "ExactHinge", "augmented": "AugmentedHinge"}[parameters["bound"]],
                "noise": attributes.get("noise_", 0.0),
            },
            "scale": _scale(parameters, tuning),
            "scaler": {"name": "ColumnScaler"} | state["scaler"],  # the first files had only one kind
            "members": [_member(state)],
            "link": _link(state["link"]),
            "training": {
                "elbo": attributes["elbo_"],
                "trace": attributes["elbo_trace_"],
                "passes": attributes["n_passes_"],
                "converged": attributes["converged_"],
                "interrupted": attributes.get("interrupted_", False),
            },
            "left_out": [dict(zip(("mean", "variance", "y", "weight"), state["leave_one_out"], strict=True))],
            "left_out_rows": attributes.get("loo_indices_"),
            "n_samples": None,
            "report": None if tuning is None else {"climb": []} | tuning | {"kept": _kept(state)},
        },
        "beside": state.get("beside"),
    }


def _member(state: dict[str, Any]) -> dict[str, Any]:
    features = dict(state["features"])
    if "kernel" in features:
        features = {"jitter": 0.0} | features | {"offset": features.pop("level", 0.0)}
        features.pop("level", None)
    all_saved = state["machines"]
    functions = [
        {"target": number, "offset": saved["offset"], "posterior": saved["posterior"]}
        for number, saved in enumerate(all_saved)
    ]
    wanted = [1] if len(all_saved) == 1 else list(range(len(all_saved)))
    if [saved["label"] for saved in all_saved] != wanted:
        raise ValueError(f"state.machines must have labels {wanted}")
    return {"features": features, "functions": functions, "weight": 1.0, "link": None}


def _kept(state: dict[str, Any]) -> int | None:
    """The number of the last complete trial with as many inducing points as the model has."""
    points, trials = len(state["features"]["inducing_points"]), state["tuning"]["trials"]
    fits = [i for i, trial in enumerate(trials) if trial["what"] == "fit" and trial["n_inducing"] == points]
    return fits[-1] if fits else None


def _scale(parameters: dict[str, Any], tuning: dict[str, Any] | None) -> Any:
    """The scaling of the last complete trial, if tuning chose it."""
    fits = [] if tuning is None else [trial for trial in tuning["trials"] if trial["what"] == "fit"]
    if fits:
        return fits[-1]["scale"]
    return "standard" if parameters["scale"] == "auto" else parameters["scale"]


def _link(state: dict[str, Any]) -> dict[str, Any]:
    if "normalised" in state:
        return {"name": "Normalised", "binary": _link(state["normalised"])}
    return {"name": state["name"], **state["parameters"]}
