# Every job around the code, one target each. `make help` lists them.
# A target first installs what it needs and is missing; all of them can be repeated at any time.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Outside the clone, so that a fresh clone starts with what an earlier one compiled.
export GRANARY_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/granary
export CARGO_TARGET_DIR ?= $(GRANARY_CACHE)/target
# A shell that was open while Rust was installed does not know cargo yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

# On a CI machine the lock file is law; at home adding a dependency may change it.
CARGO_FLAGS ?= $(if $(CI),--locked)
ARGS ?=
SECONDS ?= 60
# How often the server is killed under load; one round takes a second or two.
export GRANARY_CRASH_ROUNDS ?= 50
PREFIX ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)

debug := $(CARGO_TARGET_DIR)/debug
release := $(CARGO_TARGET_DIR)/release

.PHONY: help
help: ## What this file can do
	@echo "make TARGET, where TARGET is one of:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build and start Granary here (ARGS="--listen 0.0.0.0:8443": flags of `granary up`)
	@echo "The program is $(release)/granary; 'make install' puts it into $(PREFIX)/bin."
	@$(release)/granary up $(ARGS)

.PHONY: build
build: ## Build the optimised binary
	@scripts/need.sh cargo cc
	cargo build $(CARGO_FLAGS) --release -p granary

.PHONY: install
install: build ## Put the binary into PREFIX/bin (root: /usr/local, others: ~/.local)
	install -D -m 755 $(release)/granary $(DESTDIR)$(PREFIX)/bin/granary

.PHONY: test
test: ## Run all tests: the workspace's, then a session with Debian's kubectl
	@scripts/need.sh cargo cc curl jq diff mount nbdinfo qemu-img fio mkfs.ext4 mkfs.xfs ip nsenter lz4 gzip python3
	@tests/peers/kubectl.sh >/dev/null
	@tests/peers/python.sh >/dev/null || true
	@scripts/s3-server.sh >/dev/null
	cargo test $(CARGO_FLAGS) --workspace --no-fail-fast
	cargo build $(CARGO_FLAGS) --workspace --all-targets
	tests/kubectl.sh $(debug)/granary

.PHONY: lint
lint: ## Check formatting, warnings, documentation links and shell scripts
	@scripts/need.sh cargo cc rustfmt clippy shellcheck
	cargo fmt --all --check
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --workspace --no-deps
	scripts/lint-shell.sh

.PHONY: fuzz
fuzz: ## Feed hostile input to the parsers (SECONDS=60 for each target)
	@scripts/need.sh cargo cc
	fuzz/run.sh $(SECONDS)

.PHONY: conformance
conformance: ## Compare with a real kube-apiserver, built from its Go modules (needs Go)
	@scripts/need.sh cargo cc curl jq diff openssl
	cargo build $(CARGO_FLAGS) --workspace --all-targets
	tests/conformance.sh $(debug)/granary

.PHONY: guest
guest: ## Play what needs another kernel (ublk) in a QEMU guest; minutes, because it is emulated
	@scripts/need.sh cargo cc strip xz depmod busybox mkfs.ext4 fio fstrim blkdiscard blockdev qemu-system-x86_64
	cargo build $(CARGO_FLAGS) -p granary
	tests/guest.sh $(debug)/granary || { [[ $$? -eq 3 ]] && echo "guest: NOT RUN, for the reason above"; }

.PHONY: bench
bench: ## Measure against peers: bench-api, then bench-block (ARGS belong to one of them)
	$(if $(ARGS),$(error the two take different ARGS: use make bench-api or make bench-block))
	@$(MAKE) --no-print-directory bench-api
	@$(MAKE) --no-print-directory bench-block

.PHONY: bench-api
bench-api: ## The API next to etcd + kube-apiserver (ARGS="--objects 5000 --seconds 3": a quick look)
	@scripts/need.sh cargo cc curl jq openssl
	cargo build $(CARGO_FLAGS) --release -p granary -p granary-benches
	benches/api.sh $(release)/granary $(release)/api-bench $(ARGS)

.PHONY: bench-block
bench-block: ## A volume next to qemu-storage-daemon and Gluster (ARGS="--seconds 1 --size 256": a quick look)
	@scripts/need.sh cargo cc jq fio qemu-storage-daemon glusterd
	cargo build $(CARGO_FLAGS) --release -p granary
	benches/block.sh $(release)/granary $(ARGS)
