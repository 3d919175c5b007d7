# The two main targets are make demo and make test.
GO      ?= go
VERSION ?= $(shell .ci/version)
DATA    ?= molrun-data
LDFLAGS  = -s -w -X molrun/app/cli.version=$(VERSION)

.PHONY: build demo test check race lint ui ui-check ui-pictures test-ui bench bench-ui growth benchmarks uploads algorithms showcases fuzz physics coexistence dense-phases signs compare simulate files faults faults-slurm powercut soak cluster cluster-rows mutants release packages-test image-test clean

build: ## build the static binary
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o molrun .

demo: build ## start the service, run one simulation and show its result
	./molrun demo --data '$(DATA)'

test: ## check formatting, run vet and the tests of every package: five minutes, needs only Go
	@GO='$(GO)' .ci/test

check: test ## run the other checks too: static analysis, race detector, end-to-end tests, fault injection, Slurm, browsers, packages
	@GO='$(GO)' .ci/check

race: ## run the end-to-end tests under the race detector: half an hour
	GORACE=atexit_sleep_ms=0 $(GO) test -race -count=1 -timeout 2h ./app/test/e2e

lint: ## run only the format check, vet, static analysis and the spelling check
	@GO='$(GO)' .ci/test lint
	@GO='$(GO)' .ci/check lint

ui: ## build the web application into web/ui/dist; commit the result (needs Node.js 20.19)
	@.ci/ui build

ui-check: ## check types and sizes and run the unit tests of the web application
	@.ci/ui check

ui-pictures: build ## walk through the web application and save a screenshot of every page in SHOTS=ui-pictures
	@SHOTS='$(abspath $(or $(SHOTS),ui-pictures))' .ci/ui walks '$(CURDIR)/molrun'

test-ui: build ## walk through the web application in a real browser (needs Node.js and Chromium)
	@.ci/ui walks '$(CURDIR)/molrun'

bench: build ## measure the goals against limits and peers; half an hour: BENCH_JOBS=1000000 BENCH_ROUNDS=5
	@.ci/peers
	@$(GO) run ./app/test/bench run --molrun ./molrun --jobs $(or $(BENCH_JOBS),1000000) --rounds $(or $(BENCH_ROUNDS),5) $(BENCH_FLAGS)

bench-ui: build ## measure the web application in a real browser: times, tasks, memory; 12 minutes: PARTS='viewer jobs'
	@.ci/ui bench '$(CURDIR)/molrun' $(PARTS)

growth: build ## measure costs that may depend on the number of jobs (10^3 to 10^6) and draw app/test/bench/growth.svg
	@$(GO) run ./app/test/bench grow --molrun ./molrun --svg app/test/bench/growth.svg $(GROWTH_FLAGS)

benchmarks: ## run the Go benchmarks, a few seconds each
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...

fuzz: ## run every fuzz target for FUZZTIME (60s)
	GO='$(GO)' .ci/fuzz $(or $(FUZZTIME),60s)

physics: ## test the engines' physics thoroughly: up to 35 minutes on two cores
	GO='$(GO)' .ci/physics

coexistence: ## compare concentrations of five condensates with published ones, in DIR=coexistence; a day or more, can be resumed: COPIES=100 STEPS=10000000 CORES=2 PROTEINS=P12035,Q14154
	CONDENSATE_DIR='$(abspath $(or $(DIR),coexistence))' COPIES='$(COPIES)' STEPS='$(STEPS)' CORES='$(CORES)' PROTEINS='$(PROTEINS)' $(GO) test ./app/engine/condensate -run '^TestCoexistence$$' -count 1 -timeout 0 -v

dense-phases: ## compute pressures of five condensates around their published concentrations, without an interface; some hours: COPIES=24 STEPS=2000000 CORES=2 PROTEINS=Q96P88
	CONDENSATE_DIR='-' COPIES='$(COPIES)' STEPS='$(STEPS)' CORES='$(CORES)' PROTEINS='$(PROTEINS)' $(GO) test ./app/engine/condensate -run '^TestPressureOfDensePhases$$' -count 1 -timeout 0 -v

signs: ## simulate the effects of heat, salt and mutations on condensates, in DIR=signs; an hour, can be resumed: STEPS=500000 CORES=2 CASES=heat,aromatics,salt
	CONDENSATE_DIR='$(abspath $(or $(DIR),signs))' STEPS='$(STEPS)' CORES='$(CORES)' CASES='$(CASES)' $(GO) test ./app/engine/condensate -run '^TestSigns$$' -count 1 -timeout 0 -v

compare: ## compare the engines' speed with LAMMPS (lmp) for one chain and a slab of 100, and benchmark steps; about ten minutes
	CGIDP_LAMMPS=Hst5,DSS1,aSyn140,ht2N4R CGIDP_LAMMPS_SLAB=1 $(GO) test -run SpeedNextToLAMMPS -bench . -count 1 -timeout 0 -v ./app/engine/md

mutants: ## run mutation tests: plant errors and list those that the package's tests miss: PACKAGES='./storage ./blobs'
	@GO='$(GO)' .ci/mutants $(PACKAGES)

simulate: ## run the deterministic simulation of the service with random seeds: SEEDS=10000
	$(GO) test ./app/test/simulation -run TestSeeds -timeout 2h -seeds $(or $(SEEDS),10000)

files: ## write the structures of the repository (also STRUCTURES='DIR/*.pdb') and generated ones in SPELLINGS=1000 random variants of their format, and check that they are read correctly, as gemmi reads them (needs python3-gemmi), and 200 as the viewer does (needs Node.js)
	@kept=$$(mktemp -d) && trap 'rm -rf "$$kept"' EXIT && export KEPT="$$kept" SPELLINGS='$(or $(SPELLINGS),1000)' && \
		$(GO) test ./app/test/files -count 1 -timeout 1h -v && .ci/ui files

faults: ## test crashes, failing system calls, a full disk and damaged files with the real binary: KILLS=200 POSITIONS=20
	GO='$(GO)' .ci/faults $(or $(KILLS),200) $(or $(POSITIONS),20)

faults-slurm: ## test faults of a Slurm cluster: ROUNDS=50; a large batch on one: ROWS=10000; reused job IDs: GIVEN=20
	GO='$(GO)' .ci/faults-slurm $(or $(ROUNDS),50) $(or $(ROWS),10000) $(or $(ARRAY_SIZE),1001) $(or $(GIVEN),20)

powercut: ## test power cuts and a clock jump in a virtual machine (needs Debian and qemu): CUTS=25
	GO='$(GO)' .ci/powercut $(or $(CUTS),25)

soak: ## run heavy load of every kind at once, with files of SIZE=10GiB: a few minutes
	MOLRUN_SOAK=$(or $(SIZE),10GiB) $(GO) test ./app/test/e2e -run Soak -count 1 -timeout 2h -v

uploads: ## upload a file of SIZE=2GiB, and a batch of 1,000 files of that total size, despite interruptions: reset connections, killed programs
	MOLRUN_UPLOAD=$(or $(SIZE),2GiB) MOLRUN_BATCH=$(or $(SIZE),2GiB) TEST_REQUIRE_ALL=1 $(GO) test ./app/test/e2e -run 'TestUploadSurvivesFiveBreaks|TestBatchOfLocalFilesSendsNoneTwice' -count 1 -timeout 2h -v

algorithms: build ## install the catalogue's programs that Debian has, run every example, all bad inputs and hostile texts
	@.ci/algorithms
	./molrun algorithms test --all
	$(GO) test ./app/test/e2e -run 'BadInputs|HostileTexts' -count 1 -timeout 3h -v -trials 0

showcases: build ## simulate lysozyme in water and dock 50 ligands into it, with pictures in SHOWCASES=showcases: ten minutes
	.ci/showcases ./molrun '$(or $(SHOWCASES),showcases)'

cluster: ## run jobs on a real Slurm cluster on this machine, including a batch of ROWS=1000 (needs root and .ci/slurm)
	MOLRUN_CLUSTER_ROWS=$(or $(ROWS),1000) TEST_REQUIRE_ALL=1 $(GO) test ./app/test/e2e -run JobsOnTheCluster -count 1 -timeout 2h -v

cluster-rows: ## measure a batch of ROWS=500 short jobs on a cluster against a plain job array and a loop (needs root and .ci/slurm): TAKES=0 seconds each, PEER=500 in the array and the loop, ROUNDS=3
	$(GO) test ./app/test/faults -run ShortRowsNextToAPlainArray -count 1 -timeout 3h -v -short-rows $(or $(ROWS),500) -short-seconds $(or $(TAKES),0) -short-peer $(or $(PEER),0) -short-rounds $(or $(ROUNDS),3)

release: ## build static binaries, packages for Debian and RPM, SPDX lists and checksums in dist: VERSION=1.2.3
	@GO='$(GO)' $(if $(filter command line environment,$(origin VERSION)),VERSION='$(VERSION)') .ci/release dist

packages-test: ## install, upgrade, remove and purge the package in a virtual machine while jobs run (needs root, Debian and qemu)
	@GO='$(GO)' .ci/packages

image-test: ## build the Dockerfile with Podman and test the image (needs root, podman and Debian)
	@GO='$(GO)' .ci/container

clean:
	rm -f molrun
