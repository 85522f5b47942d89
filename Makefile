# SPDX-License-Identifier: Apache-2.0

GO          ?= go
COUNT       ?= 6
# Each run has other seeds; FIRST=0 repeats the first ones.
SEEDS       ?= 300
FIRST       ?= $(shell date +%s)
BENCHTIME   ?= 200ms
# A number of runs: with a time limit, the fuzzer itself can fail (golang/go#75804).
FUZZTIME    ?= 20000x
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0

PIECES      := ./store ./deltafifo ./reflector ./informer ./workqueue ./controller ./leaderelection ./metrics
MODULES     := . e2e compat/example lab/browser

.PHONY: help run test tour lint vuln update pictures fuzz simulate bench browser e2e older swap-proof check

help: ## print this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

run: ## the stack on an embedded API server: print every hop of every change (Ctrl-C stops)
	$(GO) build -o bin/informerstack ./cmd/informerstack
	@bin/informerstack run

test: ## all tests, with the race detector and in random order
	$(GO) test -race -shuffle=on ./...
	$(GO) -C compat/example test -race ./...

tour: ## the stories in teaching order, one at a time on a terminal (ONLY=name or piece selects)
	$(GO) run ./internal/tour $(ONLY)

lint: ## gofmt, tidy modules, vet and staticcheck
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not gofmt'ed: $$unformatted"; exit 1; }
	@for module in $(MODULES); do (cd $$module && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...) || exit 1; done

vuln: ## known vulnerabilities in the code that is called; needs vuln.go.dev, so it is no part of check
	@for module in $(MODULES); do (cd $$module && $(GO) run $(GOVULNCHECK) ./...) || exit 1; done

update: ## rewrite the transcripts, the quotes in the docs, docs/path.md and the drawings from the present code
	$(GO) test -run 'Transcript' $(PIECES) ./apitest -update
	$(GO) test -run 'QuoteTheSource' ./internal/layout -update
	$(GO) test -run 'Path' ./internal/path -update
	$(GO) run ./internal/pictures -lab=false

pictures: ## draw the pictures of the docs from the present code; those of the laboratory need Chromium
	$(GO) run ./internal/pictures $(if $(BENCH),-bench $(BENCH))

fuzz: ## each fuzz target for FUZZTIME
	@for package in $$(grep -l '^func Fuzz' */*_test.go internal/*/*_test.go | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -hoE '^func Fuzz\w+' $$package/*_test.go | cut -c6-); do \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x ./$$package || exit 1; done; done

simulate: ## whole programs on a server that fails, with SEEDS new seeds, and the same on client-go
	@mkdir -p bin
	@$(GO) test -count=1 -timeout 6h -v -run 'TestSimulate|TestReference' ./internal/simulation -first $(FIRST) -seeds $(SEEDS) >bin/simulate.txt \
		|| { grep -vE '^ *(===|--- (PASS|SKIP)) ' bin/simulate.txt; exit 1; }
	@grep -E '^ *(simulation|referencetotals)_test.go' bin/simulate.txt

bench: ## benchmarks of this stack and of client-go, in COUNT whole runs, so that both meet the same noise
	@mkdir -p bin && rm -f bin/bench.txt
	@for run in $$(seq $(COUNT)); do \
		echo "run $$run of $(COUNT)"; \
		$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 30m $(PIECES) >>bin/bench.txt || { tail -20 bin/bench.txt; exit 1; }; done
	$(GO) run $(BENCHSTAT) -col /impl bin/bench.txt

browser: ## the tests of the laboratory's page in Chromium, which must be installed
	$(GO) -C lab/browser test -count=1 -parallel 4 -timeout 20m .

e2e: ## the tests on a real kube-apiserver and etcd, which are built first
	$(GO) -C e2e test -count=1 -timeout 20m $$($(GO) -C e2e list ./... | grep -v /swapped)

older: ## compat's tests with client-go v0.36
	GOFLAGS='$(GOFLAGS) -modfile=$(CURDIR)/internal/parity/testdata/go-0.36.mod' $(GO) test ./compat/...

swap-proof: ## build other programs on this stack, and require that their tests pass as on client-go
	$(GO) -C e2e test -count=1 -timeout 90m -v -run '$(PROOFS)' ./swapped ./foo

check: lint test simulate older fuzz e2e ## all checks of CI, including client-go's own tests on this stack
	$(MAKE) swap-proof PROOFS=ClientGo
