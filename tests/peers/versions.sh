# The one place that says which real peers we hold ours against, and where they are kept.
# Sourced by the other scripts here; must not do anything but set variables.

KUBERNETES_VERSION="${KUBERNETES_VERSION:-v1.36.3}"
# Debian's etcd (3.4.23) lacks the progress requests that a watch with an initial list needs, so the
# version that Kubernetes itself is built against is used.
ETCD_VERSION="${ETCD_VERSION:-v3.6.8}"
# What the client of the instance manager in another language is built from.
GRPCIO_VERSION="${GRPCIO_VERSION:-1.85.1}"
PROTOBUF_VERSION="${PROTOBUF_VERSION:-7.36.2}"
PEER_DIR="${GRANARY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/granary}/conformance"

# What a script answers when a tool chain or package is absent and cannot be installed:
# the caller says "not run" instead of "failed".
EXIT_NOT_AVAILABLE=3
