# Atoll. `make help` lists what there is to make.

# One set of flags for building, vetting and linting, so that they share Go's
# build cache. Tests run with the race detector, which has a cache of its own.
GO_STATIC := CGO_ENABLED=0
GO_FLAGS  := -trimpath
LD_FLAGS  := -s -w

# The whole suite uses real engines: two packages at a time keep a small
# machine responsive, and nothing may hang a build for ever.
TEST_FLAGS   ?= -race -p 2 -timeout 20m
TEST_PACKAGES ?= ./...
BENCH        ?= .

# The linter is a program of its own module, so that its many dependencies stay
# out of go.mod. Building it the first time takes minutes.
LINT_ENV := $(GO_STATIC) GOFLAGS="$(strip $(shell go env GOFLAGS) $(GO_FLAGS))"

GUEST_DIR   := internal/guestbin/bin
GUEST_ARCHS := amd64 arm64
GUESTS      := $(GUEST_ARCHS:%=$(GUEST_DIR)/atoll-guest-linux-%)

# The programs of this tree, by their directories.
PROGRAMS := $(patsubst cmd/%/,bin/%,$(sort $(dir $(wildcard cmd/*/*.go))))

.DEFAULT_GOAL := build

.PHONY: build
build: guest $(PROGRAMS) ## build bin/atoll and its companions, static

# Go decides what is out of date, not make: the recipes always run, and cost
# little when there is nothing to do.
.PHONY: $(PROGRAMS) $(GUESTS)
$(PROGRAMS): guest
	$(GO_STATIC) go build $(GO_FLAGS) -ldflags "$(LD_FLAGS)" -o $@ ./cmd/$(@F)

.PHONY: guest
guest: $(if $(wildcard cmd/atoll-guest/*.go),$(GUESTS)) ## build the guests that bin/atoll embeds

$(GUESTS): $(GUEST_DIR)/atoll-guest-linux-%:
	GOOS=linux GOARCH=$* $(GO_STATIC) go build $(GO_FLAGS) -ldflags "$(LD_FLAGS)" -o $@ ./cmd/atoll-guest

.PHONY: run
run: engine build ## show what Atoll can do, on this machine (needs root)
	@scripts/demo.sh

.PHONY: test
test: engine build vet ## run every test, on real engines (needs root)
	go test $(TEST_FLAGS) $(TEST_PACKAGES)

.PHONY: vet
vet:
	$(GO_STATIC) go vet $(GO_FLAGS) ./...

.PHONY: lint
lint: ## check style and the house rules (.golangci.yml)
	$(LINT_ENV) go tool -modfile=tools/go.mod golangci-lint run --allow-serial-runners ./...

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
	rm -rf bin $(GUESTS)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
