"""Small captures of a cluster, as folders of what the commands of Slurm print."""

from collections.abc import Mapping
from typing import Any

from fuzz.mutation import to_json

NOW = 1795367300
"""When the captures were made, in seconds since 1970."""

CONFIGURATION = {
    "slurm.conf": b"""\
ClusterName=here
SelectTypeParameters=CR_Core_Memory
Licenses=lab:3,matlab@site:4
NodeName=DEFAULT Sockets=2 CoresPerSocket=4 ThreadsPerCore=1 # two sockets
NodeName=c[1-4] RealMemory=16000 Feature=ib,fast Weight=1
NodeName=g[1-2] RealMemory=32000 Gres=gpu:2,shard:8 State=UNKNOWN
NodeSet=gpus Nodes=g[1-2]
DownNodes=c4 State=DRAIN Reason="a disk"
PartitionName=batch Nodes=c[1-4] Default=YES MaxTime=2-00:00:00 \\
  PriorityTier=2 OverSubscribe=NO
PartitionName=gpu Nodes=gpus,c1 MaxNodes=2 DefMemPerCPU=1000 State=UP
""",
    "gres.conf": b"NodeName=g[1-2] Name=gpu Type=a100 File=/srv/gpu[0-1] Cores=0-3\n",
    "topology.conf": b"SwitchName=l1 Nodes=c[1-4]\nSwitchName=l2 Nodes=g[1-2]\n"
    b"SwitchName=s1 Switches=l[1-2]\n",
}
"""What an administrator wrote."""

TOPOLOGIES = b"""\
---
- topology: fabric  # the default one
  cluster_default: true
  tree:
    switches:
      - switch: l1
        nodes: c[1-4]
      - {switch: l2, nodes: "g[1-2]"}
      - switch: s1
        children: l[1-2]
- topology: racks
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b1, nodes: "c[1-2]"}
      - {block: b2, nodes: 'c[3-4]'}
- topology: cube
  torus3d:
    toruses:
      - name: t
        dims: {x: 2, y: 2, z: 1}
        regions:
          - anchor: {x: 0, y: 0, z: 0}
            dims: {x: 2, y: 2, z: 1}
            nodes: c[1-4]
"""

_TEXTS = {
    "now": f"{NOW}\n".encode(),
    "config.txt": b"Configuration data as of 2026-11-22T17:08:20\nClusterName = here\n"
    b"DefMemPerCPU            = 1000\nSelectType = select/cons_tres\n"
    b"SelectTypeParameters    = CR_CORE_MEMORY\nLicenses = lab:3\n",
    "partitions.txt": b"PartitionName=batch AllowGroups=ALL Default=YES MaxNodes=UNLIMITED "
    b"MaxTime=2-00:00:00 MinNodes=0 Nodes=c[1-4] PriorityJobFactor=1 PriorityTier=2 "
    b"OverSubscribe=NO State=UP DefMemPerNode=UNLIMITED\nPartitionName=gpu AllowGroups=ALL "
    b"Default=NO MaxNodes=2 MaxTime=UNLIMITED Nodes=c1,g[1-2] PriorityTier=1 "
    b"OverSubscribe=EXCLUSIVE State=UP DefMemPerCPU=2000\n",
    "topology.txt": b"SwitchName=l1 Level=0 LinkSpeed=1 Nodes=c[1-4]\n"
    b"SwitchName=l2 Level=0 LinkSpeed=1 Nodes=g[1-2]\n"
    b"SwitchName=s1 Level=1 LinkSpeed=1 Nodes=c[1-4],g[1-2] Switches=l[1-2]\n",
}

_LINES = {
    "licenses.txt": b"LicenseName=lab Total=3 Used=1 Free=2 Reserved=0 Remote=no\n",
    "reservations.txt": b"ReservationName=night StartTime=2026-11-22T20:00:00 "
    b"EndTime=2026-11-22T22:00:00 Duration=02:00:00 Nodes=c[3-4] NodeCnt=2 State=INACTIVE\n",
    "jobs.txt": b"JobId=7 JobName=a Requeue=1 OverSubscribe=OK Contiguous=0 SchedNodeList=c[1-2] "
    b"NumNodes=2-2 Switches=1@00:05:00\n"
    b"JobId=8 JobName=b OverSubscribe=NO Exclusive=USER Contiguous=0 Comment=more\nof it\n",
    "nodes.txt": b"".join(
        b"NodeName=%s CPUAlloc=%d CPUEfctv=8 CPUTot=8 AvailableFeatures=ib ActiveFeatures=ib "
        b"Gres=%s RealMemory=16000 AllocMem=%d State=%s ThreadsPerCore=1 Partitions=batch "
        b"CfgTRES=cpu=8,mem=16000M AllocTRES=cpu=%d,mem=%dM GresUsed=%s\n"
        % (name, used, gres, 1000 * used, state, used, 1000 * used, held)
        for name, used, state, gres, held in (
            (b"c1", 4, b"MIXED", b"(null)", b""),
            (b"c2", 0, b"IDLE+CLOUD+POWERED_DOWN", b"(null)", b""),
            (b"c3", 0, b"IDLE", b"(null)", b""),
            (b"c4", 0, b"DOWN*+DRAIN Reason=a disk [root@2026-11-22T10:00:00]", b"(null)", b""),
            (b"g1", 1, b"MIXED", b"gpu:a100:2(S:0-1)", b"gpu:a100:1(IDX:0)"),
            (b"g2", 0, b"IDLE", b"gpu:a100:2(S:0-1)", b"gpu:a100:0(IDX:N/A)"),
        )
    ),
}
"""What versions without JSON of it print."""


def _dump(version: int, key: str, records: list[dict[str, Any]]) -> bytes:
    old, new = {"type": "openapi/v0.0.38"}, {"data_parser": f"data_parser/v0.0.{version}"}
    plugin = old if version == 38 else new
    meta = {"plugin": plugin, "Slurm": {"release": "24.11.5"}}
    return to_json({"meta": meta, key: records, "last_update": NOW})


def _queue(version: int) -> list[dict[str, Any]]:
    """Return the records of jobs: two that wait, a job array, and one that runs."""

    def number(value: int | None) -> Any:
        if version == 38:
            return value or 0
        return {"set": value is not None, "infinite": False, "number": value or 0}

    def words(*given: str) -> Any:
        return given[0] if version == 38 else list(given)

    usual = {
        "account": "physics", "user_name": "anna", "qos": "normal", "partition": "batch",
        "job_state": words("PENDING"), "state_reason": "Priority", "flags": ["X"], "hold": False,
        "requeue": True, "batch_flag": True, "comment": "", "dependency": "", "licenses": "",
        "features": "", "required_nodes": "", "excluded_nodes": "", "resv_name": "", "name": "a",
        "submit_time": number(NOW - 300), "eligible_time": number(NOW - 300), "nice": 0,
        "start_time": number(0), "end_time": number(0), "time_limit": number(60),
        "node_count": number(1), "max_nodes": number(0), "cpus": number(2), "tasks": number(2),
        "cpus_per_task": number(1), "tasks_per_node": number(0), "minimum_cpus_per_node": number(1),
        "memory_per_cpu": number(500), "memory_per_node": number(None), "priority": number(400),
        "tres_req_str": "cpu=2,mem=1000M,node=1", "tres_per_node": "", "tres_per_task": "",
        "tres_per_job": "", "cpus_per_tres": "", "memory_per_tres": "", "contiguous": False,
        "threads_per_core": number(None), "array_job_id": number(0), "array_task_string": "",
        "array_task_id": number(None), "array_max_tasks": number(0), "het_job_id": number(0),
        "job_resources": None, "gres_detail": [], "shared": words("none"),
    }  # fmt: skip
    if version > 38:
        usual |= {"required_switches": 0, "maximum_switch_wait_time": 0}
        usual |= {"scheduled_nodes": "", "segment_size": 0}
    core = [{"index": place, "status": ["ALLOCATED"]} for place in range(4)]
    has = {"name": "c1", "memory": {"allocated": 4000}, "sockets": [{"index": 0, "cores": core}]}
    resources: dict[str, Any] = {"nodes": {"count": 1, "list": "c1", "allocation": [has]}}
    if version == 38:
        cores = {str(place): "allocated" for place in range(4)}
        old = {"nodename": "c1", "memory_allocated": 4000, "sockets": {"0": {"cores": cores}}}
        resources = {"nodes": "c1", "allocated_nodes": [old]}
    changes: tuple[dict[str, Any], ...] = (
        {"job_id": 7, "node_count": number(2), "tres_req_str": "cpu=2,mem=1000M,node=2"},
        {"job_id": 8, "features": "ib&fast", "excluded_nodes": "c[1-2]", "licenses": "lab:1"},
        {"job_id": 9, "array_job_id": number(9), "array_task_string": "0-3:2,7%2",
         "array_max_tasks": number(2), "partition": "gpu,batch", "tres_per_node": "gres/gpu:1"},
        {"job_id": 12, "required_nodes": "c1", "dependency": "afterok:7", "tasks": number(30)},
        {"job_id": 5, "job_state": words("RUNNING"), "job_resources": resources,
         "start_time": number(NOW - 100), "end_time": number(NOW + 3500), "cpus": number(4)},
    )  # fmt: skip
    return [usual | change for change in changes]


def _nodes(version: int) -> list[dict[str, Any]]:
    gpu = {"gres": "gpu:a100:2(S:0-1)", "gres_used": "gpu:a100:1(IDX:0)", "gres_drained": "N/A"}
    none = {"gres": "", "gres_used": "", "gres_drained": "N/A"}
    return [
        {
            "name": name, "cpus": 8, "effective_cpus": 8, "real_memory": 16000, "threads": 1,
            "specialized_memory": 0, "alloc_cpus": used, "alloc_memory": 1000 * used,
            "state": state, "active_features": ["ib", "fast"], "features": ["ib"],
            "partitions": ["batch"], "reason": "", "tres_used": f"cpu={used}",
            **(gpu if name[0] == "g" else none),
        }
        for name, used, state in (
            ("c1", 4, ["MIXED"]), ("c2", 0, ["IDLE"]), ("c3", 0, ["IDLE", "PLANNED"]),
            ("c4", 0, ["DOWN", "DRAIN"]), ("g1", 1, ["MIXED"]), ("g2", 0, ["IDLE"]),
        )
    ]  # fmt: skip


def _of_json() -> dict[str, bytes]:
    reserved = {
        "name": "night", "node_list": "c[3-4]", "flags": ["SPEC_NODES"],
        "start_time": {"set": True, "infinite": False, "number": NOW + 9000},
        "end_time": {"set": True, "infinite": False, "number": NOW + 16200},
    }  # fmt: skip
    licence = {"LicenseName": "lab", "Total": 3, "Used": 1, "Free": 2}
    return {
        **_TEXTS,
        "squeue.json": _dump(42, "jobs", _queue(42)),
        "nodes.json": _dump(42, "nodes", _nodes(42)),
        "licenses.json": _dump(42, "licenses", [licence]),
        "reservations.json": _dump(42, "reservations", [reserved]),
    }


CAPTURES: tuple[Mapping[str, bytes], ...] = (
    _of_json(),
    {**_of_json(), "topology.yaml": TOPOLOGIES, "topology.txt": b""},
    {**_TEXTS, **_LINES, "squeue.json": _dump(38, "jobs", _queue(38))},
)
"""Files of each capture: of a version with JSON of all, with topologies, and of an old one."""
