"""The manifests of Kubernetes as kustomize joins them, and checks against schemas."""

import json
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
PARTIES = ("party-0", "party-1")
VERSION = "1.34"  # the oldest one: `sleep` of preStop is stable since then
BASE_FIELDS = {"apiVersion", "kind", "resources"}
OVERLAY_FIELDS = BASE_FIELDS | {"namespace", "patches", "configMapGenerator"}


def _object(required=(), **fields):
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT, _NUMBER = {"type": "string"}, {"type": "integer", "minimum": 0}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_GROUP = {"rayStartParams": _TEXTS, "template": {"type": "object"}}

# The fields of RayCluster that the manifests use, written by hand from the CRD of KubeRay 1.7.0
# (ray.io/v1). Any other field is refused, also one that the CRD has.
RAY_CLUSTER = _object(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayCluster"},
    metadata=_object(("name",), name=_TEXT, namespace=_TEXT, labels=_TEXTS),
    spec=_object(
        ("headGroupSpec",),
        rayVersion=_TEXT,
        authOptions=_object(mode={"enum": ["disabled", "token"]}),
        headGroupSpec=_object(
            ("template",),
            serviceType={"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
            **_GROUP,
        ),
        workerGroupSpecs={
            "type": "array",
            "items": _object(
                ("groupName", "maxReplicas", "minReplicas", "template"),
                groupName=_TEXT,
                replicas=_NUMBER,
                minReplicas=_NUMBER,
                maxReplicas=_NUMBER,
                **_GROUP,
            ),
        },
    ),
)


def documents(path):
    return [one for one in yaml.safe_load_all(path.read_text()) if one is not None]


def rendered(party, root=KUBERNETES):
    """Joins the base and an overlay, by the few features of kustomize that they use."""
    (overlay,) = documents(root / party / "kustomization.yaml")
    (base,) = documents(root / "base" / "kustomization.yaml")
    assert set(base) <= BASE_FIELDS
    assert set(overlay) <= OVERLAY_FIELDS
    assert overlay["resources"] == ["../base"]
    found = [one for name in base["resources"] for one in documents(root / "base" / name)]
    for patch in overlay["patches"]:
        _patch(found, patch)
    for made in overlay["configMapGenerator"]:
        data = {name: (root / party / name).read_text() for name in made["files"]}
        metadata = {"name": made["name"]}
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    for one in found:
        if one["kind"] != "Namespace":
            one["metadata"]["namespace"] = overlay["namespace"]
    return found


def _patch(found, patch):
    target = patch["target"]
    (one,) = (
        one
        for one in found
        if (one["kind"], one["metadata"]["name"]) == (target["kind"], target["name"])
    )
    for change in yaml.safe_load(patch["patch"]):
        assert (change["op"], change["path"]) == ("replace", "/metadata/name")
        one["metadata"]["name"] = change["value"]


def check(manifest):
    """Raises jsonschema.ValidationError for a manifest that breaks the schema of its kind."""
    if manifest["kind"] != "RayCluster":
        kubernetes_validate.validate(manifest, VERSION, strict=True)
        return
    jsonschema.validate(manifest, RAY_CLUSTER)
    for pod in pod_templates(manifest):
        whole = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "pod"}}
        kubernetes_validate.validate({**whole, "template": pod}, VERSION, strict=True)


def pod_templates(manifest):
    """Returns the templates of the pods of a manifest."""
    spec = manifest.get("spec", {})
    if manifest["kind"] == "RayCluster":
        return [group["template"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]
    return [spec["template"]] if "template" in spec else []


def of_kind(manifests, kind):
    return [one for one in manifests if one["kind"] == kind]


def texts(value):
    """Yields all strings within a manifest."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)


def copy(manifests):
    return json.loads(json.dumps(manifests))
