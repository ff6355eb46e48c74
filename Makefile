# Tenon's tasks. "make help" lists them.
SHELL := /bin/bash -o pipefail
BIN := bin/tenon
CONTROLLER_GEN := go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
STATICCHECK_VERSION := v0.8.2
GOVULNCHECK_VERSION := v1.8.0
# The other modules of the repository, and what is linted and tested in each. Of the lab only its own code is: its command
# links the whole of Kubernetes, which vet and staticcheck would read from end to end.
MODULES := lab:./internal/... lab:./oracle bench:./... cloudprovider/kwok/catalog/gen:./... cloudprovider/aws/price/gen:./... \
  deploy/aws/check:./... release:./... examples/provider:./...
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
each_module = @for m in $(MODULES); do echo "$(1) $$m"; (cd $${m%%:*} && pkgs=$${m\#\#*:} && $(2)) || exit 1; done

.PHONY: help
help: ## list the tasks
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## run the main job on a lab of its own: 50 pods come and go (KEEP=1 leaves it running)
	@$(BIN) demo $(if $(KEEP),--keep)

.PHONY: demo-aws
demo-aws: build ## the same with a simulated AWS account: an EC2NodeClass, and a spot interruption in between
	@$(BIN) demo --cloud aws --dir .demo-aws $(if $(KEEP),--keep)

.PHONY: first-pod
first-pod: lab ## install the chart on a fresh lab, apply one manifest, and print how long the first pod on a new node takes: 30 s at most (WITHIN=30s)
	@log="$$(go test ./internal/chart/onlab -run '^TestFirstPod$$' -count=1 -v -args -first-pod-within $(or $(WITHIN),30s) 2>&1)" || { echo "$$log"; exit 1; }; \
	  grep -o 'from helm install to the first pod.*' <<< "$$log"

.PHONY: memory
memory: lab ## run the chart's controller under 1Gi with 45 EC2NodeClasses and NodePools of all instance types, and judge its peak (CLASSES=45)
	@log="$$(go test ./internal/chart/onlab -run '^TestMemory$$' -count=1 -timeout 30m -v -args -memory-classes $(or $(CLASSES),45) 2>&1)" || { echo "$$log"; exit 1; }; \
	  grep -o 'with [0-9]* EC2NodeClasses.*' <<< "$$log"

.PHONY: test
test: lint verify lab ## lint, check generated files, and run every test
	go test -timeout 30m ./...
	$(call each_module,test,list="$$(go list $$pkgs | grep -v /bench/move$$)" && go test $$list)

# It builds the peer, which asks for a newer compiler than the rest of the repository; the go command fetches it.
.PHONY: test-move
test-move: lab ## hand a cluster of 50 nodes from the peer to Tenon and back, with both programs
	cd bench && go test ./move -count=1 -timeout 60m -v $(ARGS)

.PHONY: test-aws
test-aws: ## judge the AWS provider by the conformance suite: on a simulator, and at AWS_ENDPOINT_URL if it is set (docs/tasks/aws.md)
	go test ./cloudprovider/aws -run 'TestConformance|TestEndpoint' -count=1 -timeout 60m -v $(ARGS)

.PHONY: race
race: ## run the tests that need no lab under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race ./cmd/... ./operator ./internal/lease ./internal/logging ./internal/tolerant ./internal/version ./internal/actuate ./internal/cluster ./internal/command ./internal/reason ./internal/render ./internal/disrupt/... ./internal/ingest/... ./internal/lifecycle ./internal/loop ./internal/observe/... ./internal/pack/... ./internal/plan ./internal/replay ./internal/require ./internal/resource ./internal/topology ./internal/market ./internal/purchase ./internal/schedule ./internal/whatif ./internal/nominate ./internal/validate ./cloudprovider/choose ./cloudprovider/fake ./cloudprovider/conformance $$(go list ./cloudprovider/aws/... | grep -v -e /nodeclass -e /onlab)

.PHONY: soak
soak: ## play seeds of the simulation until it is told to stop, and keep count (FROM=1 for the first seed, TALLY=file for the count)
	go test ./internal/sim -run TestSoak -timeout 0 -v -soak -from $(or $(FROM),$$(date +%s)000) -tally $(abspath $(or $(TALLY),.soak/tally.jsonl))

# The fuzz targets, each with the number of inputs that a short run tries. Together they take about two minutes on two cores.
FUZZ := internal/fuzz:FuzzCluster:4000 internal/ingest:FuzzPool:4000 internal/ingest:FuzzClaim:4000 internal/ingest:FuzzAnnotations:4000 \
  internal/ingest:FuzzGrace:10000 internal/ingest/pools:FuzzWindow:400 internal/ingest:FuzzConversion:800 internal/replay:FuzzRead:2000 \
  api/roundtrip:FuzzThereAndBack:2000 cloudprovider/aws/interrupt:FuzzMessage:20000 cloudprovider/aws/family:FuzzUserData:10000

.PHONY: fuzz
fuzz: ## fuzz one target after the other (FUZZTIME=1h for each, or 5000x for so many inputs; ONLY=FuzzCluster for one)
	@bad=0; for f in $(FUZZ); do IFS=: read -r pkg name count <<< "$$f"; \
	  test -z "$(ONLY)" || test "$(ONLY)" = "$$name" || continue; \
	  echo "== $$name in ./$$pkg"; \
	  go test ./$$pkg -run '^$$' -fuzz "^$$name$$" -fuzztime $(or $(FUZZTIME),1h) -fuzzminimizetime 5s -timeout 0 || { bad=1; echo "$$name found something: it is in $$pkg/testdata/fuzz/$$name; commit it with the fix" >&2; }; \
	done; exit $$bad

.PHONY: fuzz-short
fuzz-short: ## fuzz every target for a number of inputs that is fixed: about two minutes in all
	@for f in $(FUZZ); do IFS=: read -r pkg name count <<< "$$f"; \
	  go test ./$$pkg -run '^$$' -fuzz "^$$name$$" -fuzztime $${count}x -fuzzminimizetime 5s -timeout 10m || { echo "$$name found something: it is in $$pkg/testdata/fuzz/$$name" >&2; exit 1; }; \
	done

.PHONY: fuzz-corpus
fuzz-corpus: ## keep inputs that the fuzzer has found and that reach new code, in testdata/fuzz (ONLY=FuzzCluster for one target)
	@for f in $(FUZZ); do IFS=: read -r pkg name count <<< "$$f"; \
	  test -z "$(ONLY)" || test "$(ONLY)" = "$$name" || continue; \
	  go run ./internal/fuzz/corpus -package $$pkg -target $$name || exit 1; \
	done

.PHONY: mutants
mutants: ## plant small faults and list those that no test notices (ARGS='-only lifecycle -budget 20m')
	go run ./internal/mutants $(ARGS)

.PHONY: properties
properties: ## try on 5,000 generated clusters that consolidation comes to rest (CLUSTERS=20000 for more)
	go test ./internal/disrupt/search -run TestConsolidationComesToRest -timeout 120m -v -clusters $(or $(CLUSTERS),5000)
	go test ./internal/plan -run TestUnruledClusterComesToRest -timeout 120m -v -unruled 1000

.PHONY: lint
lint: ## gofmt, go vet and staticcheck, in every module
	@files="$$(gofmt -l .)" || exit 1; test -z "$$files" || { printf '%s\nrun gofmt -w on the files above\n' "$$files" >&2; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...
	$(call each_module,lint,go vet $$pkgs && $(STATICCHECK) $$pkgs)

# The database of weaknesses is at vuln.go.dev; where that can't be reached, GOVULNDB names a copy (docs: CONTRIBUTING.md).
.PHONY: vulncheck
vulncheck: ## look for known weaknesses in what the executable calls (asks vuln.go.dev; GOVULNDB names another database)
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) $(if $(GOVULNDB),-db $(GOVULNDB)) ./cmd/...

.PHONY: lab
lab: build ## build the lab's control plane, if it is not there yet (some minutes, once)
	@$(BIN) lab build

.PHONY: generate
generate: ## regenerate deep copies, CustomResourceDefinitions and their pages, what follows from the chart's values, the instance catalogs and the price table
	$(CONTROLLER_GEN) object crd paths=./api/karpenter/... paths=./api/kwok/... paths=./api/aws/... output:crd:dir=charts/karpenter-crd/templates
	@# controller-gen's pattern for quantities lets 1e1.5 pass, which no Kubernetes client can read: one such object would
	@# hide all others of its kind. The exponent is a whole number of at most three digits.
	@# The chart's annotations stand in a comment, so that kubectl can apply the files as they are.
	@for f in charts/karpenter-crd/templates/*.yaml; do \
	  sed 's/\[eE\](\\+|-)?((\[0-9\]+(\\\.\[0-9\]\*)?)|(\\\.\[0-9\]+))/[eE](\\+|-)?[0-9]{1,3}/' $$f | \
	    awk '{print} /^    controller-gen.kubebuilder.io\/version:/ {print "    # more: {{ with .Values.additionalAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}"}' > $$f.tmp && mv $$f.tmp $$f || exit 1; \
	done
	@# The API server takes times for date-time that no Kubernetes client can read, such as 2024-01-01t00:00:00z. The pattern leaves
	@# those that Go reads.
	@for f in charts/karpenter-crd/templates/*.yaml; do \
	  awk '{print} /^ *format: date-time$$/ {sub(/format: date-time/, "pattern: ^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-4]):([0-5][0-9]|60))$$"); print}' \
	    $$f > $$f.tmp && mv $$f.tmp $$f || exit 1; \
	done
	@# spec.kubelet is an open map in Go, so that every setting is kept as it was written. What the API server checks of it stands in a file.
	@f=charts/karpenter-crd/templates/karpenter.k8s.aws_ec2nodeclasses.yaml; \
	  awk '/^              kubelet:$$/ {print; while ((getline line < "api/aws/v1/kubelet.schema.yaml") > 0) print "                " line; inside=1; next} \
	    inside && /^                / {next} {inside=0; print}' $$f > $$f.tmp && mv $$f.tmp $$f
	@# Karpenter wrote conditions of NodeClaims without a reason or a message once, and its schema takes them. The marks of metav1.Condition can't be
	@# changed from outside.
	@f=charts/karpenter-crd/templates/karpenter.sh_nodeclaims.yaml; \
	  awk '/^              conditions:$$/ {inside=1} /^              [a-z]/ && !/ conditions:$$/ {inside=0} \
	    inside && (/^                  - (message|reason)$$/ || /^                      minLength: 1$$/ || /This field may not be empty\.$$/) {next} \
	    inside {sub(/pattern: \^\[A-Za-z\]\(\[A-Za-z0-9_,:\]\*\[A-Za-z0-9_\]\)\?\$$$$/, "pattern: ^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$$")} {print}' $$f > $$f.tmp && mv $$f.tmp $$f
	go run ./internal/apidocs -out docs/reference/api
	go generate ./cloudprovider/aws/price ./cloudprovider/kwok/catalog # the second reads what the first writes
	go run ./internal/chart

# What generate writes to.
GENERATED := api charts docs/reference/api docs/reference/chart.md cloudprovider/kwok/catalog cloudprovider/aws/price cloudprovider/aws/ec2sim/catalog

.PHONY: verify
verify: generate ## fail if a generated file differs from what its source gives
	@drift="$$(git status --porcelain -- $(GENERATED))"; \
	  test -z "$$drift" || { echo "$$drift"; git diff --stat -- $(GENERATED); echo "generated files differ: commit what make generate writes" >&2; exit 1; }

.PHONY: build
build: ## build bin/tenon
	go build -o $(BIN) ./cmd/tenon

.PHONY: controller
controller: ## build bin/controller: what the image has, without the commands that people use
	go build -o bin/controller ./cmd/controller

# What people get (docs/tasks/release.md). DIST is where it goes, VERSION is for a version other than the one by tag. The program
# that writes it runs with the compiler that it builds with, because the compression in the archives is the compiler's too.
DIST ?= dist
RELEASE = cd release && GOWORK=off GOTOOLCHAIN=$$(sed -n 's/^const Toolchain = "\(.*\)"/\1/p' internal/compile/compile.go) \
  go run . $(1) -root .. -out $(abspath $(DIST)) $(if $(VERSION),-version $(VERSION))

.PHONY: image
image: ## write the controller's image for amd64 and arm64 to dist/image, an OCI layout; needs no container runtime
	$(call RELEASE,image)

.PHONY: release
release: ## write all that a release has to dist: executables, image, charts, CRDs, bills of materials, checksums
	$(call RELEASE,all)

# Whoever builds a commit gets the same digest: here once more, from a clone elsewhere and with an empty build cache.
.PHONY: reproduce
reproduce: image ## build the image of this commit twice, the second time elsewhere and from nothing, and compare
	@work="$$(mktemp -d)" && trap 'chmod -R u+w "$$work"; rm -rf "$$work"' EXIT && \
	  git clone -q --no-local . "$$work/clone" && \
	  GOCACHE="$$work/cache" SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(MAKE) --no-print-directory -C "$$work/clone" image DIST="$$work/dist" && \
	  diff -r "$(abspath $(DIST))/image" "$$work/dist/image" && echo "the two images are the same"

.PHONY: bench
bench: ## run the engine's benchmarks, in the form that benchstat reads
	go test -run '^$$' -bench . -benchmem -timeout 30m ./internal/...
	cd bench && go test -run '^$$' -bench . -benchmem ./internal/ours

# The peer asks for a newer compiler than the rest of the repository; the go command fetches it.
.PHONY: bench-peer
bench-peer: ## give the same work to Tenon's engine and to its peer's, in one process, and compare (ARGS='-only fleet')
	cd bench/versus && export GOTOOLCHAIN=auto GOWORK=off && go vet ./... && go test ./... && go run . $(ARGS)

.PHONY: bench-lab
bench-lab: build ## run Tenon and its peer as programs, one after the other on fresh labs, and compare (ARGS='-only up-1000')
	cd bench && go run . -tenon ../$(BIN) $(ARGS)
