# Two commands do everything: make demo, make test.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
DATA    ?= molrun-data
LDFLAGS  = -s -w -X molrun/app/cli.version=$(VERSION)

.PHONY: build demo test lint bench growth benchmarks fuzz physics compare simulate faults faults-slurm powercut soak cluster clean

build: ## the binary, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o molrun .

demo: build ## start the service, run one simulation, show its result
	./molrun demo --data '$(DATA)'

test: ## format, vet, static analysis, all tests
	GO='$(GO)' .ci/test

lint: ## only format, vet and static analysis
	GO='$(GO)' .ci/test lint

bench: build ## each goal next to its limit or peer: BENCH_JOBS=1000000 BENCH_ROUNDS=5, half an hour
	@.ci/peers
	@$(GO) run ./app/bench run --molrun ./molrun --jobs $(or $(BENCH_JOBS),1000000) --rounds $(or $(BENCH_ROUNDS),5) $(BENCH_FLAGS)

growth: build ## costs that may depend on the number of jobs, 10^3 to 10^6: draws app/bench/growth.svg
	@$(GO) run ./app/bench grow --molrun ./molrun --svg app/bench/growth.svg $(GROWTH_FLAGS)

benchmarks: ## the Go benchmarks beside the code, a few seconds each
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...

fuzz: ## every fuzz target for FUZZTIME (60s)
	GO='$(GO)' .ci/fuzz $(or $(FUZZTIME),60s)

physics: ## the engine's physics at length: up to 30 minutes on two cores
	GO='$(GO)' .ci/physics

compare: ## the engine's speed next to LAMMPS (lmp), about four minutes
	CGIDP_LAMMPS=Hst5,DSS1,aSyn140,ht2N4R $(GO) test -run SpeedNextToLAMMPS -count 1 -timeout 0 -v ./app/engine/cgidp/md

simulate: ## random seeds against the whole service: SEEDS=10000
	$(GO) test ./app/simulation -run TestSeeds -timeout 2h -seeds $(or $(SEEDS),10000)

faults: ## crashes, failing calls, full disk and damage, on the real binary
	GO='$(GO)' .ci/faults $(or $(KILLS),200) $(or $(POSITIONS),20)

faults-slurm: ## a Slurm cluster that fails in many ways: ROUNDS=50; a large batch on one: ROWS=10000
	GO='$(GO)' .ci/faults-slurm $(or $(ROUNDS),50) $(or $(ROWS),10000) $(or $(ARRAY_SIZE),1001)

powercut: ## power cuts and a clock jump in a virtual machine (Debian, qemu)
	GO='$(GO)' .ci/powercut $(or $(CUTS),25)

soak: ## what strains the service most, at once, with files of SIZE=10GiB: some minutes
	MOLRUN_SOAK=$(or $(SIZE),10GiB) $(GO) test ./app/cli -run Soak -count 1 -timeout 2h -v

cluster: ## jobs on a real Slurm cluster on this machine (root, .ci/slurm), a batch of ROWS=1000 among them
	MOLRUN_CLUSTER_ROWS=$(or $(ROWS),1000) TEST_REQUIRE_ALL=1 $(GO) test ./app/cli -run JobsOnTheCluster -count 1 -timeout 2h -v

clean:
	rm -f molrun
