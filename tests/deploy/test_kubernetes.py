"""The manifests of deploy/kubernetes: schemas, doors, secrets, and what the parties share."""

import tomllib

import jsonschema
import pytest

from deploy.manifests import (
    KUBERNETES,
    PARTIES,
    check,
    copy,
    of_kind,
    pod_templates,
    rendered,
    texts,
)
from nescio.cli import build_parser

RAY_PORTS = {6379, 8265, 10001}
HTTPS = 8443


@pytest.fixture(params=PARTIES)
def manifests(request):
    return rendered(request.param)


def front(manifests):
    (deployment,) = of_kind(manifests, "Deployment")
    return deployment


def container(manifests):
    (found,) = front(manifests)["spec"]["template"]["spec"]["containers"]
    return found


def node(manifests):
    """Returns the container beside a front that is a node of the Ray cluster."""
    (found,) = front(manifests)["spec"]["template"]["spec"]["initContainers"]
    return found


def ray_containers(manifests):
    """Returns the containers of Ray: its head, its workers, and the node beside a front."""
    (cluster,) = of_kind(manifests, "RayCluster")
    pods = pod_templates(cluster)
    return [pod["spec"]["containers"][0] for pod in pods] + [node(manifests)]


def option(words, name):
    return words[words.index(name) + 1]


def test_every_manifest_has_the_fields_of_its_schema(manifests):
    assert {one["kind"] for one in manifests} >= {
        *("Namespace", "RayCluster", "Deployment", "Service", "NetworkPolicy"),
        *("PersistentVolumeClaim", "PodDisruptionBudget", "ConfigMap"),
    }
    for one in manifests:
        check(one)


def objects(value):
    """Yields all objects within a manifest that have fields of a schema."""
    if isinstance(value, dict):
        free = {"labels", "matchLabels", "rayStartParams", "requests", "limits", "data"}
        yield value
        for name, one in value.items():
            of_service = name == "selector" and not {"matchLabels", "matchExpressions"} & set(one)
            if name not in free and not of_service:
                yield from objects(one)
    elif isinstance(value, list):
        for one in value:
            yield from objects(one)


def test_a_wrong_field_is_refused_wherever_it_is(manifests):
    for manifest in manifests:
        for place in range(len(list(objects(manifest)))):
            wrong = copy(manifest)
            list(objects(wrong))[place]["wrongField"] = "x"
            with pytest.raises(jsonschema.ValidationError):
                check(wrong)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", ("spec", "replicas"), "two"),
        ("Service", ("spec", "ports"), {"port": 443}),
        ("RayCluster", ("spec", "headGroupSpec", "serviceType"), "Internet"),
        ("RayCluster", ("spec", "workerGroupSpecs", 0, "replicas"), "8"),
        ("RayCluster", ("spec", "headGroupSpec", "template", "spec", "containers"), {}),
        ("PodDisruptionBudget", ("spec", "selector"), "front"),
    ],
)
def test_wrong_values_are_refused(kind, path, value):
    manifest = of_kind(rendered("party-0"), kind)[0]
    place = manifest
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        check(manifest)


def exposed(manifests):
    """Returns the ports of pods that Services open to the outside, and their selectors."""
    found = []
    for service in of_kind(manifests, "Service"):
        if service["spec"].get("type", "ClusterIP") != "ClusterIP":
            ports = service["spec"]["ports"]
            found += [
                (one.get("targetPort", one["port"]), service["spec"]["selector"]) for one in ports
            ]
    for cluster in of_kind(manifests, "RayCluster"):
        if cluster["spec"]["headGroupSpec"].get("serviceType", "ClusterIP") != "ClusterIP":
            found += [(port, {}) for port in sorted(RAY_PORTS)]
    return found


def test_the_https_port_of_fronts_is_the_only_door(manifests):
    ((port, selector),) = exposed(manifests)
    names = {one["name"]: one["containerPort"] for one in container(manifests)["ports"]}
    assert names[port] == HTTPS
    assert selector.items() <= front(manifests)["spec"]["template"]["metadata"]["labels"].items()
    for cluster in of_kind(manifests, "RayCluster"):
        for pod in pod_templates(cluster):
            assert not selector.items() <= pod["metadata"]["labels"].items()


def test_a_ray_port_that_is_opened_is_found(manifests):
    of_kind(manifests, "RayCluster")[0]["spec"]["headGroupSpec"]["serviceType"] = "NodePort"
    assert {port for port, _ in exposed(manifests)} >= RAY_PORTS


def test_policies_admit_https_from_outside_and_the_namespace_to_the_rest(manifests):
    policies = of_kind(manifests, "NetworkPolicy")
    (inside,) = (one["spec"] for one in policies if one["spec"]["podSelector"] == {})
    assert inside["policyTypes"] == ["Ingress", "Egress"]
    assert inside["ingress"] == [{"from": [{"podSelector": {}}]}]
    rest = [one["spec"] for one in policies if one["spec"]["podSelector"] != {}]
    (opened,) = rest
    labels = opened["podSelector"]["matchLabels"]
    assert labels == front(manifests)["spec"]["selector"]["matchLabels"]
    assert opened["ingress"] == [{"ports": [{"protocol": "TCP", "port": HTTPS}]}]


def test_pods_are_not_root_and_write_to_volumes_alone(manifests):
    pods = [pod["spec"] for one in manifests for pod in pod_templates(one)]
    assert len(pods) == 3
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod["automountServiceAccountToken"]
        for one in pod["containers"] + pod.get("initContainers", []):
            assert one["securityContext"]["readOnlyRootFilesystem"]
            assert not one["securityContext"]["allowPrivilegeEscalation"]
            assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert set(one["resources"]["requests"]) == {"cpu", "memory"}
            assert {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"} in one["env"]
        for one in pod["containers"]:
            mounted = {mount["name"] for mount in one["volumeMounts"]}
            assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_probes_ask_what_the_service_answers(manifests):
    own = container(manifests)
    paths = {name: own[f"{name}Probe"]["httpGet"]["path"] for name in ("liveness", "readiness")}
    assert paths == {"liveness": "/healthz", "readiness": "/readyz"}
    for name in ("startup", "liveness", "readiness"):
        assert own[f"{name}Probe"]["httpGet"]["scheme"] == "HTTPS"


def test_a_pod_ends_after_its_requests(manifests):
    pause = container(manifests)["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain = float(option(container(manifests)["command"], "--drain-seconds"))
    grace = front(manifests)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert pause >= 10
    assert pause + drain + 5 <= grace


@pytest.mark.parametrize("party", PARTIES)
def test_the_command_and_the_configuration_have_options_of_the_parser(party):
    words = list(container(rendered(party))["command"])
    parser = build_parser()
    words[words.index("--config") + 1] = str(KUBERNETES / party / "nescio.toml")
    assert words[0] == "nescio"
    found = parser.parse_args(words[1:])
    assert found.party == int(party[-1])
    assert (found.port, found.host, found.log) == (HTTPS, "0.0.0.0", "json")


def test_the_workers_hold_all_shards(manifests):
    words = container(manifests)["command"]
    (group,) = of_kind(manifests, "RayCluster")[0]["spec"]["workerGroupSpecs"]
    shards, replicas = (int(option(words, name)) for name in ("--shards", "--replicas"))
    assert group["minReplicas"] == group["replicas"] == shards * replicas


def test_a_front_joins_the_cluster_by_a_node_beside_it(manifests):
    """Ray connects a process by the sockets of a node on its machine, in the folder of both."""
    words = node(manifests)["command"]
    assert words[:2] == ["ray", "start"]
    assert "--block" in words
    assert f"--address={option(container(manifests)['command'], '--cluster')}" in words
    assert node(manifests)["restartPolicy"] == "Always"
    for own in (node(manifests), container(manifests)):  # both are the user of the pod
        assert not {"runAsUser", "runAsGroup"} & set(own["securityContext"])
    mounts = [
        {one["mountPath"]: one["name"] for one in own["volumeMounts"]}
        for own in (node(manifests), container(manifests))
    ]
    for path in ("/tmp", "/dev/shm", "/var/lib/nescio"):
        assert mounts[0][path] == mounts[1][path]
    socket = node(manifests)["startupProbe"]["exec"]["command"][-1]
    assert socket.startswith("/tmp/ray/")


def test_shards_are_on_workers_alone(manifests):
    """A shard reserves memory, and no processor."""
    head = of_kind(manifests, "RayCluster")[0]["spec"]["headGroupSpec"]["rayStartParams"]
    assert (head["num-cpus"], head["memory"]) == ("0", "0")
    assert {"--num-cpus=0", "--memory=0"} <= set(node(manifests)["command"])


def test_batches_stay_in_memory(manifests):
    """Ray puts its object store in /tmp if it is larger than /dev/shm, and spills to /tmp."""
    spec = of_kind(manifests, "RayCluster")[0]["spec"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    front_pod = front(manifests)["spec"]["template"]
    words = node(manifests)["command"]
    options = dict(word[2:].split("=") for word in words if "=" in word)
    for given, pod in [
        *((one["rayStartParams"], one["template"]) for one in groups),
        (options, front_pod),
    ]:
        (shared,) = (one for one in pod["spec"]["volumes"] if one["name"] == "shm")
        assert shared["emptyDir"]["medium"] == "Memory"
        size = int(shared["emptyDir"]["sizeLimit"].removesuffix("Gi")) << 30
        assert int(given["object-store-memory"]) <= size // 2
        assert given["object-spilling-directory"] == "/dev/shm"


def test_all_nodes_send_a_batch_with_its_call(manifests):
    from nescio.service._cluster._connect import INLINE_BYTES  # noqa: PLC0415

    value = {"name": "RAY_max_direct_call_object_size", "value": str(INLINE_BYTES)}
    for one in [*ray_containers(manifests), container(manifests)]:
        assert value in one["env"]


def test_files_of_the_configuration_are_mounted(manifests):
    (config,) = of_kind(manifests, "ConfigMap")
    options = tomllib.loads(config["data"]["nescio.toml"])
    volumes = {one["name"]: one for one in front(manifests)["spec"]["template"]["spec"]["volumes"]}
    sources = volumes["secrets"]["projected"]["sources"]
    paths = {item["path"] for one in sources for item in one["secret"]["items"]}
    folder = "/etc/nescio-secrets/"
    names = ("tls-cert", "tls-key", "admin-token-file")
    assert {options[name].removeprefix(folder) for name in names} == paths
    mounts = {one["name"]: one["mountPath"] for one in container(manifests)["volumeMounts"]}
    assert mounts["secrets"] + "/" == folder
    assert mounts["data"] == options["data"]


def test_no_secret_is_in_the_manifests(manifests):
    assert of_kind(manifests, "Secret") == []
    assert not [text for text in texts(manifests) if "PRIVATE KEY" in text]
    for own in (container(manifests), node(manifests)):
        assert {"name": "RAY_AUTH_MODE", "value": "token"} in own["env"]
        variables = [one for one in own["env"] if "TOKEN" in one["name"]]
        assert [set(one) for one in variables] == [{"name", "valueFrom"}]
    (cluster,) = of_kind(manifests, "RayCluster")  # KubeRay gives its pods the token
    assert cluster["spec"]["authOptions"] == {"mode": "token"}


def places(manifests):
    """Returns namespace, kind and name of all objects, and of the Secrets that pods use."""
    found = set()
    for one in manifests:
        name = one["metadata"]["name"]
        found.add((one["metadata"].get("namespace", name), one["kind"], name))
    namespace = front(manifests)["metadata"]["namespace"]
    volumes = front(manifests)["spec"]["template"]["spec"]["volumes"]
    for source in next(one for one in volumes if "projected" in one)["projected"]["sources"]:
        found.add((namespace, "Secret", source["secret"]["name"]))
    return found


def test_the_parties_share_no_object_and_no_configuration_of_their_own():
    zero, one = (rendered(party) for party in PARTIES)
    assert not places(zero) & places(one)
    assert len({namespace for namespace, *_ in places(zero) | places(one)}) == 2
    settings = [
        tomllib.loads(of_kind(own, "ConfigMap")[0]["data"]["nescio.toml"]) for own in (zero, one)
    ]
    assert [own["party"] for own in settings] == [0, 1]
    assert settings[0]["peer"] != settings[1]["peer"]
    assert settings[0]["table"] == settings[1]["table"]
    for own, other in ((zero, "party-1"), (one, "party-0")):
        assert not [text for text in texts(own) if other in text]
