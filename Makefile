# Atoll. `make help` lists what there is to make.

# One set of flags for building, vetting and linting, so that they share Go's
# build cache. Tests run with the race detector, which has a cache of its own.
GO_STATIC := CGO_ENABLED=0
GO_FLAGS  := -trimpath
LD_FLAGS  := -s -w

# The whole suite uses real engines: two packages at a time keep a small
# machine responsive, and nothing may hang a build for ever. A test that fails
# is run once more, alone, after all the others: if it passes then, the build
# does, and the test is listed at the end as unsteady, which is a defect to look
# into: it goes into $(SEEN), and the next time it is unsteady the build fails.
# More failures than a few are no accident and end the build, and so does a data
# race, however rarely it shows. What go test would vet is vetted by `make vet`
# before, with all of vet's checks and without the race detector's cache.
# The checks of pointers that come with the race detector are left out of SQLite,
# which is translated from C and would fill much of its time with them.
TEST_FLAGS   ?= -race -gcflags='modernc.org/...=-d=checkptr=0' -p 2 -vet=off -timeout 40m
TEST_EVENTS  := bin/tests.jsonl
UNSTEADY     := bin/unsteady-tests
SEEN         := testdata/unsteady-tests
# A program with the race detector sleeps for a second before it exits, unless
# told otherwise; tests start thousands.
TEST_ENV     := ATOLL_TEST_ALL=1 GORACE="atexit_sleep_ms=0 $(GORACE)"
RERUN_FLAGS  ?= --rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-report=$(UNSTEADY)
# The packages that take longest come first, so that none of them runs alone at the end.
TEST_PACKAGES ?= ./cmd/atoll ./internal/runtime/kube ./internal/runtime/docker ./internal/app ./internal/runtime/linux ./internal/testkit/openclawtest ./...
BENCH        ?= .

# The linter and the test runner are programs of a module of their own, so that
# their many dependencies stay out of go.mod. Building the linter the first time
# takes minutes.
TOOL     := go tool -modfile=tools/go.mod
LINT_ENV := $(GO_STATIC) GOFLAGS="$(strip $(shell go env GOFLAGS) $(GO_FLAGS))"

GUEST_DIR   := internal/runtime/guestbin/bin
GUEST_ARCHS := amd64 arm64
GUESTS      := $(GUEST_ARCHS:%=$(GUEST_DIR)/atoll-guest-linux-%)

# The scanner for secrets is a module of its own, whose many dependencies stay
# out of go.mod and out of every other program.
SCANNER := internal/contentpolicy/leaks/bin/atoll-leaks-linux-$(shell go env GOARCH)

# The programs of this tree, by their directories.
PROGRAMS := $(patsubst cmd/%/,bin/%,$(sort $(dir $(wildcard cmd/*/*.go))))

.DEFAULT_GOAL := build

.PHONY: build
build: guest $(PROGRAMS) ## build bin/atoll and its companions, static

# Go decides what is out of date, not make: the recipes always run, and cost
# little when there is nothing to do.
.PHONY: $(PROGRAMS) $(GUESTS) $(SCANNER)
$(PROGRAMS): guest
	$(GO_STATIC) go build $(GO_FLAGS) -ldflags "$(LD_FLAGS)" -o $@ ./cmd/$(@F)

.PHONY: guest
guest: $(GUESTS) $(SCANNER) ## build the programs that bin/atoll embeds

$(GUESTS): $(GUEST_DIR)/atoll-guest-linux-%:
	GOOS=linux GOARCH=$* $(GO_STATIC) go build $(GO_FLAGS) -ldflags "$(LD_FLAGS)" -o $@ ./cmd/atoll-guest

$(SCANNER):
	cd scanner && $(GO_STATIC) go build $(GO_FLAGS) -ldflags "$(LD_FLAGS)" -o ../$@ .

.PHONY: run
run: build ## show what Atoll can do, on this machine: no engine, no root needed
	@scripts/demo.sh

# What a machine lacks (root, control groups, an engine, npm) leaves out the tests
# that need it; `make test` fails instead. Some packages mostly wait, so that four
# at a time keep two cores busy.
CHECK_FLAGS ?= -p 4

.PHONY: check
check: guest ## run the tests that need no root, no engine and no npm, in minutes
	go test $(CHECK_FLAGS) ./...

# What tests need is brought by several at once: much of it waits for the network.
.PHONY: prepare
prepare: engine build openclaw sdks vet cluster

.PHONY: test
test: ## run every test, on real engines and a cluster (needs root)
	@$(MAKE) --no-print-directory -j 3 -O prepare
	@rm -f $(UNSTEADY)
	eval "$$(scripts/test-cluster.sh env)" && $(TEST_ENV) $(TOOL) gotestsum --format standard-quiet --jsonfile $(TEST_EVENTS) $(RERUN_FLAGS) --packages '$(TEST_PACKAGES)' -- $(TEST_FLAGS); \
		status=$$?; scripts/test-cluster.sh down && exit $$status
	@! grep -F 'WARNING: DATA RACE' $(TEST_EVENTS)
	cd scanner && go test $(GO_FLAGS) -count=1 .
	@[ ! -s $(UNSTEADY) ] || { echo 'unsteady: these failed once and passed alone; find the cause, or add them to $(SEEN)'; cat $(UNSTEADY); }
	@[ ! -s $(UNSTEADY) ] || ! cut -d: -f1 $(UNSTEADY) | grep -Fxf $(SEEN) || { echo 'unsteady for the second time: see $(SEEN)'; exit 1; }

# The OpenClaw to run; empty is the current one, 2026.2.26 the other that is tested.
OPENCLAW ?=
# The one that is tested whole in a sandbox: it fits into the memory of a run.
OPENCLAW_OF_RUNS := 2026.2.26

.PHONY: openclaw-packages
openclaw-packages:
	scripts/openclaw.sh up $(OPENCLAW)
	scripts/openclaw.sh up $(OPENCLAW_OF_RUNS)

.PHONY: openclaw
openclaw: engine build openclaw-packages ## install the OpenClaw that tests run, and make its image (needs npm)
	scripts/openclaw.sh image >bin/openclaw-image.log 2>&1 || { tail -n 30 bin/openclaw-image.log; exit 1; }

.PHONY: sdks
sdks: ## install the SDKs of models and the agents that tests run (needs npm)
	scripts/sdks.sh up
	scripts/sdks.sh up agents
	scripts/sdks.sh up mcp
	scripts/sdks.sh up typescript
	scripts/sdks.sh up e2b
	scripts/sdks.sh up browsers
	scripts/sdks.sh up dashboard

.PHONY: dashboard
dashboard: ## build web/ into what the gateway serves (needs npm); commit the result
	scripts/sdks.sh up dashboard
	ln -sfn "$$(scripts/sdks.sh dir dashboard)/node_modules" web/node_modules
	cd web && npm run --silent types && npx tsc && npm run --silent build

.PHONY: test-openclaw
test-openclaw: engine build openclaw ## run the real OpenClaw on Atoll's docker (needs root); OPENCLAW=2026.2.26 chooses
	$(TEST_ENV) ATOLL_TEST_OPENCLAW=$(OPENCLAW) go test $(TEST_FLAGS) -count=1 ./internal/testkit/openclawtest

# RACE_ONLY are the packages with files for the race detector alone.
RACE_ONLY := ./internal/wire/socket

.PHONY: vet
vet:
	$(GO_STATIC) go vet $(GO_FLAGS) ./...
	go vet -race $(RACE_ONLY)
	cd scanner && $(GO_STATIC) go vet $(GO_FLAGS) .

# Elsewhere than on Linux the program checks configurations and works with a
# gateway; the packages client and api work everywhere.
OTHER_SYSTEMS := darwin windows
PORTABLE      := ./cmd/atoll ./client ./api ./internal/cli/nonlinux ./internal/vm/...

.PHONY: cross
cross: $(OTHER_SYSTEMS:%=cross-%) ## compile and vet what works on other systems

.PHONY: $(OTHER_SYSTEMS:%=cross-%)
$(OTHER_SYSTEMS:%=cross-%): cross-%:
	GOOS=$* $(GO_STATIC) go build $(GO_FLAGS) -o bin/$*/ $(PORTABLE)
	GOOS=$* $(GO_STATIC) go vet $(GO_FLAGS) $(PORTABLE)

.PHONY: lint
lint: ## check style and the house rules (.golangci.yml)
	$(LINT_ENV) $(TOOL) golangci-lint run --allow-serial-runners ./...

.PHONY: cluster
cluster: engine guest ## bring up the Kubernetes cluster that tests run on (needs root)
	scripts/test-cluster.sh up

# Two nodes, in a directory of its own, so that one can be killed while other tests run.
TWO_NODES := /var/tmp/atoll-test-cluster-2
CLUSTER_PACKAGES := ./cmd/atoll-kube ./deploy/kubernetes ./internal/runtime/kube/...

.PHONY: test-cluster
test-cluster: engine build ## run the tests of clusters on one with two nodes (needs root)
	ATOLL_TEST_CLUSTER_DIR=$(TWO_NODES) scripts/test-cluster.sh up --nodes 2
	ATOLL_TEST_CLUSTER_DIR=$(TWO_NODES) scripts/test-cluster.sh agent-sandbox
	eval "$$(ATOLL_TEST_CLUSTER_DIR=$(TWO_NODES) scripts/test-cluster.sh env)" && $(TEST_ENV) go test $(TEST_FLAGS) -count=1 $(CLUSTER_PACKAGES)
	ATOLL_TEST_CLUSTER_DIR=$(TWO_NODES) scripts/test-cluster.sh down

.PHONY: bench
bench: engine build ## run the Go benchmarks; BENCH=regexp chooses
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

.PHONY: engine
engine: ## bring up the engines that tests run on (needs root)
	scripts/test-engine.sh up

.PHONY: fmt
fmt: ## format the Go files
	gofmt -l -w $(shell git ls-files -co --exclude-standard '*.go')

.PHONY: clean
clean: ## remove what was built; engines and images stay
	rm -rf bin $(GUESTS) $(SCANNER)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
