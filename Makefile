# `make help` lists the targets. Variables can be set on the command line: make demo HTTP_PORT=9080

SHELL   := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

# The names of ingress-nginx's programs, which are links to headgate: newProgram in
# cmd/headgate/main.go has them.
LINKS := nginx-ingress-controller dbg kube-webhook-certgen wait-shutdown

HTTP_PORT    ?= 8080
HTTPS_PORT   ?= 8443
HEALTHZ_PORT ?= 10254
DASHBOARD_PORT ?= 8000
FUZZTIME     ?= 30s

.DEFAULT_GOAL := help
.PHONY: help build headgate plugin demo test test-all test-nightly lint fmt bench dev-cluster fuzz site image image-lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build every program into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags '-X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/ ./cmd/...
	@cd bin && for name in $(LINKS); do ln -sf headgate $$name; done

# What the demo and `make test` run.
headgate:
	CGO_ENABLED=0 go build -trimpath -ldflags '-X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/ ./cmd/headgate
	@cd bin && for name in $(LINKS); do ln -sf headgate $$name; done

plugin: ## build kubectl's plugin for all platforms, and krew's manifest, into bin/plugin/ (VERSION=v1.2.3)
	go run ./scripts/plugin -version '$(VERSION)'

demo: ## serve examples/demo with Headgate, until Ctrl-C (HTTP_PORT, HTTPS_PORT, HEALTHZ_PORT, DASHBOARD_PORT)
	@scripts/install-deps demo
	@$(MAKE) --no-print-directory headgate
	@scripts/demo -http-port=$(HTTP_PORT) -https-port=$(HTTPS_PORT) -healthz-port=$(HEALTHZ_PORT) -dashboard-port=$(DASHBOARD_PORT)

test: ## linters, and tests that take seconds: at most 4 minutes, 12 the first time
	@scripts/test quick

test-all: ## all linters and tests, with clusters: at most 35 minutes, 50 the first time
	@scripts/test all

test-nightly: ## what takes hours: fuzzers, measurements, all combinations
	@scripts/test nightly

lint: ## all linters
	@scripts/test lint

fmt: ## format the Go code
	gofmt -w .

bench: ## measure performance, print a table and write bench/results.json
	@scripts/install-deps bench
	@$(MAKE) --no-print-directory build
	go run ./bench

dev-cluster: ## run Kubernetes with Headgate in it, until Ctrl-C (as root)
	@scripts/dev-cluster

fuzz: ## run every fuzz test for FUZZTIME
	@scripts/fuzz $(FUZZTIME)

site: ## build the documentation as a site into bin/site, and check all links
	@scripts/install-deps site
	@go run ./scripts/site

image: ## build the container images for amd64 and arm64 as bin/image/headgate.tar (IMAGE_KEY: a private key that signs them)
	@for arch in amd64 arm64; do \
	    GOOS=linux GOARCH=$$arch CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/image/$$arch/headgate ./cmd/headgate || exit; \
	done
	CGO_ENABLED=0 go run -trimpath ./scripts/image -headgate amd64=bin/image/amd64/headgate -headgate arm64=bin/image/arm64/headgate \
	    -version=$(VERSION) -revision=$(COMMIT) -key='$(IMAGE_KEY)' -o bin/image/headgate.tar

image-lock: ## pin the newest packages of Debian for the image
	CGO_ENABLED=0 go run -trimpath ./scripts/image -lock
	go test ./internal/image -run TestDockerfile -update

clean: ## remove built programs
	rm -rf bin
