"""Drives an instance manager: replicas and an engine, then their volume through the proxy.

Everything it knows of the protocol is in the tables below, in the notation `name number type`.
No generated code: the messages are built from the tables when the program starts.
"""

import sys
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, empty_pb2, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

PROCESS = """
ProcessSpec: name 1 string; binary 2 string; args 3 repeated string; port_count 4 int32; port_args 5 repeated string
ProcessStatus: state 1 string; error_msg 2 string; port_start 3 int32; port_end 4 int32; uuid 6 string
ProcessCreateRequest: spec 1 ProcessSpec
ProcessDeleteRequest: name 1 string; uuid 2 string
ProcessGetRequest: name 1 string
ProcessListRequest:
ProcessResponse: spec 1 ProcessSpec; status 2 ProcessStatus; deleted 3 bool
ProcessListResponse: processes 1 map<string, ProcessResponse>
"""

PTYPES = """
Volume: name 1 string; size 2 int64; replicaCount 3 int32; endpoint 4 string; frontend 5 string; frontendState 6 string
VolumeExpandRequest: size 1 int64
VolumeSnapshotRequest: name 1 string; labels 2 map<string, string>; freezeFilesystem 3 bool
VolumeSnapshotReply: name 1 string
ReplicaAddress: address 1 string; instanceName 2 string
ControllerReplica: address 1 ReplicaAddress; mode 2 int32
ReplicaListReply: replicas 1 repeated ControllerReplica
"""

IMRPC = """
ProxyEngineRequest: address 1 string; engine_name 3 string; volume_name 4 string
EngineVolumeGetProxyResponse: volume 1 .ptypes.Volume
EngineVolumeExpandRequest: proxy_engine_request 1 ProxyEngineRequest; expand 2 .ptypes.VolumeExpandRequest
EngineVolumeSnapshotRequest: proxy_engine_request 1 ProxyEngineRequest; snapshot_volume 2 .ptypes.VolumeSnapshotRequest
EngineVolumeSnapshotProxyResponse: snapshot 1 .ptypes.VolumeSnapshotReply
EngineSnapshotDiskInfo: name 1 string; parent 2 string; children 3 map<string, bool>; removed 4 bool; user_created 5 bool; created 6 string; size 7 string; labels 8 map<string, string>
EngineSnapshotListProxyResponse: disks 1 map<string, EngineSnapshotDiskInfo>
EngineSnapshotRevertRequest: proxy_engine_request 1 ProxyEngineRequest; name 2 string
EngineReplicaListProxyResponse: replica_list 1 .ptypes.ReplicaListReply
"""

SCALARS = {"string": Field.TYPE_STRING, "int32": Field.TYPE_INT32, "int64": Field.TYPE_INT64, "bool": Field.TYPE_BOOL}
READ_WRITE = 1


def set_type(field, kind, package):
    if kind in SCALARS:
        field.type = SCALARS[kind]
    else:
        field.type = Field.TYPE_MESSAGE
        field.type_name = kind if kind.startswith(".") else f".{package}.{kind}" if package else f".{kind}"


def add_map(message, field, kind, package):
    name = "".join(part.capitalize() for part in field.name.split("_")) + "Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, (part, of) in enumerate(zip(("key", "value"), kind), start=1):
        set_type(entry.field.add(name=part, number=number, label=Field.LABEL_OPTIONAL), of, package)
    prefix = f".{package}" if package else ""
    field.label, field.type, field.type_name = Field.LABEL_REPEATED, Field.TYPE_MESSAGE, f"{prefix}.{message.name}.{name}"


def load(pool, table, package, imports=()):
    file = descriptor_pb2.FileDescriptorProto(name=f"{package or 'process'}.proto", package=package, syntax="proto3")
    file.dependency.extend(imports)
    for line in table.strip().splitlines():
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for text in filter(None, (part.strip() for part in fields.split(";"))):
            field_name, number, kind = text.split(" ", 2)
            field = message.field.add(name=field_name, number=int(number), label=Field.LABEL_OPTIONAL)
            if kind.startswith("map<"):
                add_map(message, field, kind[4:-1].split(", "), package)
                continue
            if kind.startswith("repeated "):
                field.label, kind = Field.LABEL_REPEATED, kind.removeprefix("repeated ")
            set_type(field, kind, package)
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())


pool = descriptor_pool.DescriptorPool()
load(pool, PROCESS, "")
load(pool, PTYPES, "ptypes")
load(pool, IMRPC, "imrpc", ["ptypes.proto"])


def message(name):
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def call(channel, path, request, answer):
    method = channel.unary_unary(
        path, request_serializer=lambda m: m.SerializeToString(), response_deserializer=answer.FromString
    )
    return method(request, timeout=60)


def refused(code, work):
    try:
        work()
    except grpc.RpcError as error:
        assert error.code() == code, error
        return
    raise AssertionError(f"{code} was expected")


class Manager:
    def __init__(self, port):
        self.processes = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.engines = grpc.insecure_channel(f"127.0.0.1:{port + 1}")

    def process(self, method, request, answer="ProcessResponse"):
        return call(self.processes, f"/ProcessManagerService/{method}", request, message(answer))

    def start(self, name, args, port_args):
        spec = message("ProcessSpec")(
            name=name, binary="/engine-binaries/image/longhorn", args=args, port_count=1, port_args=port_args
        )
        self.process("ProcessCreate", message("ProcessCreateRequest")(spec=spec))
        for _ in range(600):
            status = self.process("ProcessGet", message("ProcessGetRequest")(name=name)).status
            if status.state == "running":
                return f"127.0.0.1:{status.port_start}"
            assert status.state == "starting", status
            time.sleep(0.1)
        raise AssertionError(f"{name} does not start")

    def stop(self, *names):
        for name in names:
            assert self.process("ProcessDelete", message("ProcessDeleteRequest")(name=name)).deleted
        while self.process("ProcessList", message("ProcessListRequest")(), "ProcessListResponse").processes:
            time.sleep(0.1)

    def proxy(self, method, request, answer=None):
        answer = message(f"imrpc.{answer}") if answer else empty_pb2.Empty
        return call(self.engines, f"/imrpc.ProxyEngineService/{method}", request, answer)


def main(port, data):
    manager = Manager(port)
    size = 64 << 20
    replicas = []
    for number in range(2):
        args = ["--volume-name", "pyvol", "replica", f"{data}-{number}", "--size", str(size)]
        replicas.append("tcp://" + manager.start(f"pyvol-r-{number}", args, ["--listen,0.0.0.0:"]))
    args = ["controller", "pyvol", "--size", str(size), "--current-size", str(size)]
    for replica in replicas:
        args += ["--replica", replica]
    address = manager.start("pyvol-e-0", args, ["--listen,0.0.0.0:"])

    who = message("imrpc.ProxyEngineRequest")(address=address, engine_name="pyvol-e-0", volume_name="pyvol")
    wrong = message("imrpc.ProxyEngineRequest")(address=address, volume_name="another")
    refused(grpc.StatusCode.FAILED_PRECONDITION, lambda: manager.proxy("VolumeGet", wrong, "EngineVolumeGetProxyResponse"))

    volume = manager.proxy("VolumeGet", who, "EngineVolumeGetProxyResponse").volume
    assert (volume.name, volume.size, volume.replicaCount, volume.frontendState) == ("pyvol", size, 2, "down"), volume

    listed = manager.proxy("ReplicaList", who, "EngineReplicaListProxyResponse").replica_list.replicas
    assert sorted(replica.address.address for replica in listed) == sorted(replicas), listed
    assert all(replica.mode == READ_WRITE for replica in listed), listed

    snapshot = message("imrpc.EngineVolumeSnapshotRequest")(proxy_engine_request=who)
    snapshot.snapshot_volume.name = "from-python"
    snapshot.snapshot_volume.labels["language"] = "python"
    made = manager.proxy("VolumeSnapshot", snapshot, "EngineVolumeSnapshotProxyResponse").snapshot
    assert made.name == "from-python", made
    refused(grpc.StatusCode.ALREADY_EXISTS, lambda: manager.proxy("VolumeSnapshot", snapshot, "EngineVolumeSnapshotProxyResponse"))

    disks = manager.proxy("SnapshotList", who, "EngineSnapshotListProxyResponse").disks
    assert set(disks) == {"from-python", "volume-head"}, disks
    one = disks["from-python"]
    assert dict(one.labels) == {"language": "python"} and dict(one.children) == {"volume-head": True}, one
    assert one.user_created and not one.removed and int(one.size) >= 0, one
    assert disks["volume-head"].parent == "from-python", disks

    revert = message("imrpc.EngineSnapshotRevertRequest")(proxy_engine_request=who, name="from-python")
    manager.proxy("SnapshotRevert", revert)
    revert.name = "nobody-made-this"
    refused(grpc.StatusCode.NOT_FOUND, lambda: manager.proxy("SnapshotRevert", revert))

    expand = message("imrpc.EngineVolumeExpandRequest")(proxy_engine_request=who)
    expand.expand.size = 2 * size
    manager.proxy("VolumeExpand", expand)
    assert manager.proxy("VolumeGet", who, "EngineVolumeGetProxyResponse").volume.size == 2 * size
    expand.expand.size = size
    refused(grpc.StatusCode.INVALID_ARGUMENT, lambda: manager.proxy("VolumeExpand", expand))

    manager.stop("pyvol-e-0", "pyvol-r-0", "pyvol-r-1")
    print("all went well")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
