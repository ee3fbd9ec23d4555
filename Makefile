# Everything that is done to this repository, by hand or by CI, is a target here.

GO           ?= go
PKG          ?= ./...
CONFIG       ?= docs/examples/service/edgelimit.yaml
TEST_TIMEOUT ?= 20m
TEST_FLAGS   ?=
CHAOS        ?= 5m
SEED         ?=
BENCH        ?= .
BENCH_ROUNDS ?= 3
BENCH_FLAGS  ?=
FUZZTIME     ?= 20s
FUZZ         ?= ^Fuzz
COVER_MIN    ?= 90
COVER_DIR    ?= cover

# The linter is pinned in a module of its own, so that its dependencies are not
# those of the library. It is built once for each version, which takes minutes.
TOOLS_MOD    := test/tools/go.mod
GOLANGCI_V   := $(shell sed -n 's|.*github.com/golangci/golangci-lint/v2 \(v[^ ]*\).*|\1|p' $(TOOLS_MOD))
GOLANGCI     := bin/tools/golangci-lint-$(GOLANGCI_V)
SCRIPTS      := .ci/run $(wildcard test/scripts/*.sh)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z][a-z-]*:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Variables: PKG, CONFIG, TEST_FLAGS, TEST_TIMEOUT, CHAOS, SEED, BENCH, BENCH_ROUNDS, BENCH_FLAGS, FUZZ, FUZZTIME, COVER_MIN; see also test/lanes/doc.go for Redis"

.PHONY: build
build: ## Build ./bin/edgelimit
	$(GO) build -o bin/edgelimit ./cmd/edgelimit

.PHONY: run
run: build ## Build and serve the sample configuration (memory provider, loopback)
	./bin/edgelimit serve --config $(CONFIG)

.PHONY: test
test: ## Run all tests with the race detector, against real Redis servers
	$(GO) test -race -shuffle=on -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) $(PKG)

.PHONY: lint
lint: $(GOLANGCI) ## Run the linters, go vet and a syntax check of the scripts
	$(GOLANGCI) run $(PKG)
	$(GO) vet $(PKG)
	@for script in $(SCRIPTS); do bash -n "$$script" || exit 1; done
	@echo "lint: $(words $(SCRIPTS)) scripts parse"

.PHONY: fmt
fmt: $(GOLANGCI) ## Format the Go files in place
	$(GOLANGCI) fmt

.PHONY: chaos
chaos: ## Break Redis for CHAOS (default 5m) and hold the bounds in time (SEED=n)
	$(GO) test ./test/chaos -count=1 -timeout 2h -v -args -duration $(CHAOS) $(if $(SEED),-seed $(SEED))

.PHONY: test-doors
test-doors: ## Run forward-auth behind real nginx and Caddy
	$(GO) vet -tags doors ./test/doors
	$(GO) test -tags doors -race -count=1 -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./test/doors

.PHONY: bench
bench: ## Compare with other limiters, short form; writes docs/benchmarks.md
	GO='$(GO)' test/scripts/benchmark.sh compare -short -rounds $(BENCH_ROUNDS) $(BENCH_FLAGS)

.PHONY: bench-full
bench-full: ## The same with longer cells and denials at every number of callers
	GO='$(GO)' test/scripts/benchmark.sh compare -rounds $(BENCH_ROUNDS) $(BENCH_FLAGS)

.PHONY: bench-scale
bench-scale: ## Growth by callers, keys, policies and memory
	GO='$(GO)' test/scripts/benchmark.sh scale $(BENCH_FLAGS)

.PHONY: bench-doors
bench-doors: ## The Envoy door beside envoyproxy/ratelimit
	GO='$(GO)' test/scripts/benchmark.sh doors -short $(BENCH_FLAGS)

.PHONY: bench-go
bench-go: ## Run every Go benchmark of this module (BENCH=regexp)
	GO='$(GO)' test/scripts/bench.sh '$(BENCH)' $(BENCH_FLAGS)

.PHONY: bench-test
bench-test: ## Lint and test the benchmark program, a module of its own
	GO='$(GO)' test/scripts/benchmark.sh lint
	GO='$(GO)' test/scripts/benchmark.sh test

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 20s) each
	GO='$(GO)' test/scripts/fuzz.sh '$(FUZZ)' '$(FUZZTIME)'

.PHONY: cover
cover: ## Print the statement coverage of contract, Redis and memory; fail below COVER_MIN
	GO='$(GO)' TEST_TIMEOUT='$(TEST_TIMEOUT)' test/scripts/cover.sh '$(COVER_MIN)' '$(COVER_DIR)'

.PHONY: verify
verify: $(GOLANGCI) ## Check that go.mod is tidy, files are formatted and generated files are up to date
	$(GO) mod tidy -diff
	cd test/benchmark && $(GO) mod tidy -diff
	$(GOLANGCI) fmt --diff
	GO='$(GO)' test/scripts/generated.sh

.PHONY: tools
tools: $(GOLANGCI) ## Build the pinned tools into ./bin/tools

.PHONY: clean
clean: ## Remove what is built, but for the tools
	rm -rf bin/edgelimit $(COVER_DIR)

# The version is in the name: a newer pin is another file.
$(GOLANGCI):
	@mkdir -p $(@D)
	@echo "building golangci-lint $(GOLANGCI_V) once, this takes minutes"
	cd $(dir $(TOOLS_MOD)) && $(GO) build -buildvcs=false -o '$(CURDIR)/$@' github.com/golangci/golangci-lint/v2/cmd/golangci-lint
