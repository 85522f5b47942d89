# SPDX-License-Identifier: Apache-2.0

GO          ?= go
COUNT       ?= 6
# Each run has other seeds. check repeats the first ones, with FIRST=0.
SEEDS       ?= 3000
FIRST       ?= $(shell date +%s)000
SIMULATIONS ?= TestSimulate|TestReference
BENCHTIME   ?= 200ms
# Where a replay's random numbers begin, and how many such beginnings to try.
SCHEDULE    ?= 0
TRIES       ?= 1
# A number of runs: with a time limit, the fuzzer itself can fail (golang/go#75804).
FUZZTIME    ?= 20000x
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
GREMLINS    := github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0

WIRE        := ./reflector/wire ./internal/decode ./internal/readahead
PIECES      := ./store ./deltafifo ./reflector ./informer ./workqueue ./controller ./leaderelection ./observe/metrics
# In teaching order: one change with all its hops, then the pieces that it passes, then those around them.
TOUR        := observe/trace reflector deltafifo store informer informer/namespaces workqueue controller leaderelection apitest observe/metrics observe/health
MODULES     := . realserver e2e e2e/controllers e2e/kubectl e2e/suites compat/example cmd/informerstack/lab/browser internal/tools/simulation/sandbox

.PHONY: help run test tour lint vuln update pictures lessons live fuzz simulate replay planted mutants bench growth browser e2e shards chaos older newer swap-proof suites check long

help: ## print this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

run: ## the stack on an embedded API server: print every hop of every change (Ctrl-C stops)
	@echo 'Building informerstack. The first build takes some minutes; see README.md.'
	$(GO) build -o bin/informerstack ./cmd/informerstack
	@bin/informerstack run

test: ## all tests, with the race detector and in random order; the longest ones are shorter
	$(GO) test -race -short -shuffle=on -timeout 40m ./...
	$(GO) -C compat/example test -race -timeout 40m ./...

tour: ## the stories and examples in teaching order (ONLY=piece or word selects)
	@$(GO) test -v -p 1 -count=1 -run '(?i)^(TestStory_|Example).*$(filter-out $(TOUR),$(ONLY))' \
		$(addprefix ./,$(or $(filter $(ONLY),$(TOUR)),$(TOUR)))

lint: ## gofmt, tidy modules, vet and staticcheck
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted"; exit 1; }
	@for module in $(MODULES); do (cd $$module && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...) || exit 1; done

vuln: ## known vulnerabilities in the code that is called; needs vuln.go.dev, so it is no part of check
	@for module in $(MODULES); do (cd $$module && $(GO) run $(GOVULNCHECK) ./...) || exit 1; done

update: ## rewrite the transcripts, the quotes in the docs and docs/reports/path.md from the present code
	$(GO) test -run 'Transcript' $(PIECES) ./apitest -update
	$(GO) test -run 'QuoteTheSource' ./internal/tools/layout -update
	$(GO) test -run 'Path' ./internal/tools/path -update

pictures: ## plot speed (BENCH=output of make bench) and growth for the docs, and photograph the laboratory in Chromium
	$(GO) run ./internal/tools/pictures $(if $(BENCH),-bench $(BENCH))
	$(GO) -C cmd/informerstack/lab/browser test -count=1 -run TestPictures . -pictures

lessons: ## record docs/lessons again: the lessons of the laboratory as pages that need no program
	$(GO) build -o bin/informerstack ./cmd/informerstack
	@bin/informerstack lab export docs/lessons --files ../..

live: ## the laboratory as a page that runs in the browser, in bin/live, for any static web server
	$(GO) build -o bin/informerstack ./cmd/informerstack
	@bin/informerstack lab export bin/live --live

fuzz: ## each fuzz target for FUZZTIME
	@for package in $$(grep -l '^func Fuzz' */*_test.go */*/*_test.go internal/*/*/*_test.go | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -hoE '^func Fuzz\w+' $$package/*_test.go | cut -c6-); do \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x ./$$package || exit 1; done; done

simulate: ## whole programs on a server that fails, with SEEDS new seeds, and the same on client-go
	@mkdir -p bin
	@$(GO) test -count=1 -timeout 6h -v -run '$(SIMULATIONS)' ./internal/tools/simulation -first $(FIRST) -seeds $(SEEDS) >bin/simulate.txt \
		|| { grep -vE '^ *(===|--- (PASS|SKIP):) ' bin/simulate.txt; exit 1; }
	@grep -E '^ *(simulation|referencetotals)_test.go' bin/simulate.txt

replay: ## one seed of the simulation, byte for byte (SEED=n or SCRIPT=file; SCHEDULE=n; TRIES=n schedules until one fails)
	$(if $(SEED)$(SCRIPT),,$(error make replay needs SEED=n or SCRIPT=file))
	@$(GO) -C internal/tools/simulation/sandbox build -o '$(CURDIR)/bin/sandbox' .
	@GOOS=wasip1 GOARCH=wasm $(GO) test -vet=off -count=1 -timeout 0 -v -run 'TestReplay$$' \
		-exec '"$(CURDIR)/bin/sandbox" -schedule $(SCHEDULE) -tries $(TRIES)' \
		./internal/tools/simulation -seed $(or $(SEED),-1) -script '$(abspath $(SCRIPT))'

# One bug for each invariant; all bugs take four times as long.
PLANTED     := store-keeps-index-entry|informer-late-handler-misses|informer-notifies-before-store|freshness-synced-early|workqueue-done-forgets|le-same-token|reflector-never-waits|reflector-watch-survives-stop|shard-over-early

planted: ## plant bugs, and require that the simulation finds each (BUG=regexp selects by name)
	$(GO) test -count=1 -timeout 3h -v -run 'TestPlanted$$/($(BUG))' ./internal/tools/simulation -planted

mutants: ## change one token at a time, and print the changes that the package's tests do not find (PIECE=./store)
	$(GO) run $(GREMLINS) unleash --timeout-coefficient 20 -S lt $(or $(PIECE),./store)

bench: ## benchmarks of this stack and of client-go, in COUNT whole runs, so that both meet the same noise
	@mkdir -p bin && rm -f bin/bench.txt
	@for run in $$(seq $(COUNT)); do \
		echo "run $$run of $(COUNT)"; \
		$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 30m $(PIECES) ./reflector/wire ./store/compact ./observe/journal ./observe/sizes ./internal/tools/firstsync >>bin/bench.txt || { tail -20 bin/bench.txt; exit 1; }; done
	$(GO) test -run '^$$' -bench Program -benchtime 20s ./compat/devtools >>bin/bench.txt
	$(GO) run $(BENCHSTAT) -col /impl bin/bench.txt

growth: ## the first sync of 10,000, 100,000 and 1,000,000 objects, for docs/pictures/growth.svg; needs 16 GB
	@rm -f bin/growth.txt && mkdir -p bin
	@for pods in 10000 100000 1000000; do \
		$(GO) test -run '^$$' -bench 'FirstSync/way=watchlist/.*/impl=(ours|client)' -benchtime 1x -timeout 2h ./internal/tools/firstsync -pods $$pods \
			| sed -n "s/^Benchmark/$$pods &/p" >>bin/growth.txt; done
	@cp bin/growth.txt internal/tools/firstsync/testdata/growth.txt && $(GO) run ./internal/tools/pictures

browser: ## the tests of the laboratory's page in Chromium, which must be installed
	$(GO) -C cmd/informerstack/lab/browser test -count=1 -parallel 10 -timeout 40m .

# The older servers, and the tests that make e2e repeats on them.
OLD         := 1.36.3
OLDER       := ^(TestConformance|TestInformer|TestWire|TestShards|TestStory)

e2e: ## the tests on a real kube-apiserver and etcd, of two versions, which are built first
	$(GO) -C realserver test -count=1 -timeout 30m ./...
	$(GO) -C e2e test -count=1 -timeout 60m $$($(GO) -C e2e list ./... | grep -v /swapped)
	$(GO) -C compat/example test -count=1 -timeout 30m ./recipes -real
	REALSERVER_VERSION=$(OLD) $(GO) -C realserver test -count=1 -timeout 30m -run TestStart .
	REALSERVER_VERSION=$(OLD) $(GO) -C e2e test -count=1 -timeout 30m -run '$(OLDER)' .

shards: ## replicas that share 50,000 objects, killed, stopped, cut off, added and removed: fifteen minutes
	@mkdir -p bin
	@for gate in true false; do $(GO) -C e2e test -count=1 -timeout 60m -v -run 'TestShards$$' ./recovery \
		-shard-objects 50000 -shard-rate 500 -shard-rounds 2 -shard-gate=$$gate >bin/shards.txt \
		|| { grep -vE '^ *(===|--- PASS) ' bin/shards.txt; exit 1; }; \
		grep -E '^ *\||double reconciles' bin/shards.txt; done

chaos: ## every fault on real servers, informers beside client-go's and sick ones: twenty minutes
	@mkdir -p bin
	@$(GO) -C e2e test -count=1 -timeout 45m -parallel 4 -v -run TestChaos ./recovery -chaos >bin/chaos.txt \
		|| { grep -vE '^ *(===|--- PASS) ' bin/chaos.txt; exit 1; }
	@grep -E '^ *\|' bin/chaos.txt

older: ## the tests of compat and wire with client-go v0.36, and of wire with the next encoding/json
	GOFLAGS='$(GOFLAGS) -modfile=$(CURDIR)/internal/tools/parity/testdata/go-0.36.mod' $(GO) test ./compat/... $(WIRE)
	GOEXPERIMENT=jsonv2 $(GO) test ./compat/decoding $(WIRE)

newer: ## names, the tests of compat and a swapped program with a pre-release of client-go v0.38; only warns
	@internal/tools/parity/newer

# On the older servers, which have the version of the swapped kube-controller-manager.
swap-proof: ## build other programs on this stack, and require that their tests pass as on client-go
	REALSERVER_VERSION=$(OLD) $(GO) -C e2e test -count=1 -timeout 90m -v -run '$(PROOFS)' ./swapped ./foo

suites: ## the tests of public controllers on apitest and on a real server: docs/reports/suites.md (ONLY=part of a package's path)
	$(GO) -C e2e/suites test -count=1 -timeout 90m -v -run 'TestOutcomes|TestUnlike|TestSuites$(if $(ONLY),/$(ONLY))' .

check: lint test browser older ## all checks of CI, including client-go's own tests on this stack
	@$(MAKE) -j2 -O e2e long # e2e mostly waits

long: ## what CI repeats with fixed seeds, and client-go's own tests
	$(MAKE) fuzz FUZZTIME=5000x
	$(MAKE) simulate SIMULATIONS=TestSimulate FIRST=0 SEEDS=200
	$(MAKE) simulate SIMULATIONS=TestReference FIRST=0 SEEDS=60
	$(GO) -C internal/tools/simulation/sandbox test -count=1 -timeout 40m .
	$(GO) test -count=1 -timeout 30m -run 'TestSimulation|TestModel' ./shard -seeds 100
	$(GO) test -count=1 -run TestPlanted_Compiles ./internal/tools/simulation -planted
	$(MAKE) planted BUG='$(PLANTED)'
	$(MAKE) swap-proof PROOFS="ClientGo|Devtools"
