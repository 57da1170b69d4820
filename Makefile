# `make demo` shows everything end to end, `make test` checks it; both install what they need into .venv.
#
#   make demo          run the demo, then serve it at http://127.0.0.1:8000/   (SERVE=0: end after the table)
#   make test          lint, types, rooms, migrations, tests, in minutes; what this machine lacks is skipped, and said
#   make quick         the tests that don't take seconds each
#   make long          the tests of many kills, orders, servers and machines; CI runs them after `make test`
#   make up            web server, worker and scheduler, configured by the environment
#   make dist          the source as an archive without its history, and an SBOM, in build/dist/
#   make release       `make dist`, and an annotated tag of this commit with the version
#   make docs          the documentation as files, in build/docs/
#   make coverage      branches of the code on which the truth rests that no test takes
#   make mutation      changes that code two thousand times, and counts which changes a test notices
#   make fuzz          the property tests with thousands of new examples
#   make crash         kills archive readings at fifty random moments, and compares the results
#   make orders        reads the same mails in twenty orders, batches and archives, and compares the databases
#   make crash-test    kills sending workers: 200 times on each database and broker, and between every two statements
#   make machines      five machines in network namespaces, each killed, cut off and slowed (root, postgresql, rabbitmq)
#   make soak          a year on a compressed clock, and machines at random for twenty minutes, with their memory
#   make matrix        the tests and the crash tests on each database and broker
#   make bench         all budgets in one table, docs/measured.md (three quarters of an hour)
#   make proof         accuracy and bench, and what of docs/measured.md falls short or got worse since 1.1 (two hours)
#   make golden        rewrites the twelve mails of tests/mail/composed with the current code
#   make maintainers   200 invented commits, compared with get_maintainer.pl (requires linux-source)
#   make model         learns the classifier of replies from fixtures/replies and the labelled threads
#   make accuracy      how replies, reports and a whole archive are read, compared with hand-made labels
#   make pictures      takes pictures of every page of the demo: build/pictures, and those of the docs (requires chromium)
#   make faults        disks that are full, without inodes or read-only, beside a running server (requires root)
#   make operating     follows docs/operating.md in a container with Debian (requires root, debootstrap, systemd-container)
#   make audit         looks for known holes in what we depend on (pip-audit)
#   make reading       docs/reading.md from the rules, judged on the invented threads, and the labelled ones if they are here

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
SERVE ?= 1
BIND ?= 127.0.0.1:8000
# Two per core: tests spend half of their time waiting for servers, browsers, git and the disk.
TESTERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

# The databases of tests sync with every transaction: in memory, where there is plenty, that costs nothing.
TEMPROOT ?= $(shell test "$$(df --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 4000000 2>/dev/null && echo /dev/shm || echo $${TMPDIR:-/tmp})

.DEFAULT_GOAL := help
.PHONY: help demo up test quick long fuzz crash faults orders crash-test bench proof golden maintainers model accuracy reading pictures operating machines soak matrix audit format lint types rooms settings docs dist release mutation coverage

help:
	@sed -n 's/^#   //p' Makefile

# --- required tools; a missing one is reported in one line ---------------------------------------
.PHONY: tools
tools:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: apt install python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: apt install python3 on Debian 12 or newer"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "the venv module is missing: apt install python3-venv"; exit 1; }
	@command -v git >/dev/null || { echo "git is missing: apt install git"; exit 1; }

# One stamp per requirements file: a second run installs nothing, and a changed file is installed again.
$(VENV)/run.stamp: requirements.txt | tools
	@echo "== installing the requirements of Perfwork into $(VENV) (only when requirements.txt changed)"
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

# What has no wheel for this Python is left out, and said: the tests that want it are skipped.
$(VENV)/dev.stamp: requirements-dev.txt requirements-optional.txt $(VENV)/run.stamp
	@echo "== installing the requirements of the tests"
	@$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@sed 's/ *#.*//; /^$$/d' requirements-optional.txt | while read -r each; do \
	 $(RUN) -m pip install --quiet --disable-pip-version-check --only-binary :all: "$$each" 2>/dev/null || \
	 echo "== no wheel of $$each for this Python: the tests that use it are skipped"; done
	@touch $@

# The documentation, which the site shows under /help/.
WRITTEN_FROM = $(wildcard docs/*.md *.md bot/documentation*.py templates/documentation/* bot/management/commands/*.py tracker/api/*.py \
 tracker/domain/*.py) tracker/services/report_actions.py properdocs.yml static/perfwork.css
build/help/index.html: $(WRITTEN_FROM) $(VENV)/run.stamp
	@echo "== building the documentation"
	@$(RUN) manage.py documentation >/dev/null

# --- the two commands ---------------------------------------------------------------------------
demo: $(VENV)/run.stamp build/help/index.html
	@$(RUN) manage.py demo --bind $(BIND) $(if $(filter 0,$(SERVE)),--no-serve)

test: lint types rooms settings build/help/index.html
	@echo "== tests"
	@PYTEST_DEBUG_TEMPROOT=$(TEMPROOT) $(RUN) -m pytest -n $(TESTERS) --dist loadgroup -m "not long"

quick: $(VENV)/dev.stamp build/help/index.html
	@PYTEST_DEBUG_TEMPROOT=$(TEMPROOT) $(RUN) -m pytest -n $(TESTERS) -m "not slow"

long: $(VENV)/dev.stamp build/help/index.html
	@PYTEST_DEBUG_TEMPROOT=$(TEMPROOT) $(RUN) -m pytest -n $(TESTERS) --dist loadgroup -m long

# --- the parts of `make test` -------------------------------------------------------------------
lint: $(VENV)/dev.stamp
	@echo "== ruff: lint and format"
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .

types: $(VENV)/dev.stamp
	@echo "== mypy: types, strict"
	@$(RUN) -m mypy

rooms: $(VENV)/dev.stamp
	@echo "== import-linter: import rules"
	@$(VENV)/bin/lint-imports --no-cache >$(VENV)/rooms.log || { cat $(VENV)/rooms.log; exit 1; }

settings: $(VENV)/dev.stamp
	@echo "== migrations complete, production settings clean"
	@$(RUN) manage.py makemigrations --check --dry-run
	@SECRET_KEY=$$($(RUN) -c 'import secrets; print(secrets.token_urlsafe(60))') ALLOWED_HOSTS=perf.example.org \
	 PERFWORK_BASE_URL=https://perf.example.org $(RUN) manage.py check --deploy --fail-level WARNING

# --- the rest -----------------------------------------------------------------------------------
up: $(VENV)/run.stamp build/help/index.html
	@$(RUN) manage.py up --bind $(BIND)

# The source as an archive without its history, and what runs with it (a CycloneDX SBOM of requirements.txt).
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' tracker/__init__.py)
dist: tools
	@git diff --quiet HEAD || { echo "uncommitted changes would be left out: commit them first"; exit 1; }
	@mkdir -p build/dist
	@git archive --format=tar.gz --prefix=perfwork-$(VERSION)/ --output=build/dist/perfwork-$(VERSION).tar.gz HEAD
	@rm -rf build/sbom && $(PYTHON) -m venv build/sbom && build/sbom/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(PYTHON) -m venv build/sbom-tool && build/sbom-tool/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	@build/sbom-tool/bin/cyclonedx-py environment --output-reproducible --output-file build/dist/perfwork-$(VERSION).cdx.json build/sbom/bin/python
	@cd build/dist && sha256sum perfwork-$(VERSION).tar.gz perfwork-$(VERSION).cdx.json | tee SHA256SUMS

release: dist
	@grep -q '^## $(VERSION) (' CHANGELOG.md || { echo "CHANGELOG.md has no section of $(VERSION): write it first"; exit 1; }
	@git rev-parse -q --verify refs/tags/v$(VERSION) >/dev/null && { echo "v$(VERSION) is there already: raise __version__ in tracker/__init__.py"; exit 1; } || true
	@git tag -a v$(VERSION) -m 'Perfwork $(VERSION)'
	@echo "tagged; publish it with: git push origin v$(VERSION), and the files of build/dist/"

docs: $(VENV)/run.stamp
	@$(RUN) manage.py documentation --to build/docs

fuzz: $(VENV)/dev.stamp
	@PERFWORK_MUTATIONS=50000 PERFWORK_COSTS=2000 $(RUN) -m pytest -n $(TESTERS) --hypothesis-profile=fuzz -m "hypothesis or fuzz" tests

crash: $(VENV)/dev.stamp
	@PERFWORK_KILLS=50 $(RUN) -m pytest -q tests/stories/test_killed_reading.py

faults: $(VENV)/dev.stamp
	@$(RUN) -m pytest -q -rs tests/faults.py

orders: $(VENV)/dev.stamp
	@PERFWORK_ORDERS=20 $(RUN) -m pytest -q -n 2 tests/bot/archives/test_any_order.py

crash-test: $(VENV)/dev.stamp
	@$(RUN) -m tests.crash
	@$(RUN) -m tests.crash.several --mails 10000

operating: $(VENV)/dev.stamp
	@$(RUN) -m tests.operating_page

machines: $(VENV)/dev.stamp
	@$(RUN) -m tests.crash.machines

soak: $(VENV)/dev.stamp
	@$(RUN) -m tests.simulation.soak
	@$(RUN) -m tests.crash.machines --minutes 20

matrix: $(VENV)/dev.stamp
	@$(RUN) -m tests.matrix

mutation: $(VENV)/dev.stamp build/help/index.html
	@$(RUN) -m pip install --quiet --disable-pip-version-check mutmut==3.8.1  # only tests/mutation.py uses it
	@$(RUN) -m tests.mutation

coverage: $(VENV)/dev.stamp build/help/index.html
	@$(RUN) -m pip install --quiet --disable-pip-version-check pytest-cov==7.1.0
	@PYTEST_DEBUG_TEMPROOT=$(TEMPROOT) $(RUN) -m pytest -n $(TESTERS) --dist loadgroup -m "not long" --cov --cov-report=
	@$(RUN) -m coverage report --skip-covered --precision=1

pictures: $(VENV)/dev.stamp
	@$(RUN) -m tests.browser.pictures

bench: $(VENV)/dev.stamp
	@$(RUN) -m pip install --quiet --disable-pip-version-check locust==2.47.0  # only benchmarks/load.py uses it
	@$(RUN) benchmarks/table.py

# Each part is written whatever the one before it ended with: what is over its budget is on the page.
proof: $(VENV)/dev.stamp
	-@$(MAKE) --no-print-directory accuracy
	-@$(MAKE) --no-print-directory bench
	@$(RUN) benchmarks/proof.py

golden: $(VENV)/dev.stamp
	@$(RUN) manage.py shell --no-imports -c "from tests.support.composed import main; main()"

maintainers: $(VENV)/dev.stamp
	@PERFWORK_COMMITS=200 $(RUN) -m pytest -q -rs tests/bot/git/test_maintainers.py -k get_maintainer

model: $(VENV)/dev.stamp
	@$(RUN) benchmarks/accuracy/model.py

accuracy: $(VENV)/dev.stamp
	@$(RUN) benchmarks/accuracy/table.py

reading: $(VENV)/dev.stamp
	@$(RUN) benchmarks/accuracy/reading.py

# Skipped, and said, where the advisories can't be reached.
audit: $(VENV)/dev.stamp
	@echo "== audit: known holes in requirements.txt"
	@$(RUN) -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	@out=$$($(RUN) -m pip_audit -r requirements.txt --progress-spinner off 2>&1); code=$$?; \
	 if echo "$$out" | grep -q "could not be audited: django "; then echo "== NOT AUDITED: PyPI's advisories can't be reached from here"; \
	 elif [ $$code -ne 0 ] && echo "$$out" | grep -q "known vulnerabilit"; then echo "$$out"; exit 1; \
	 elif [ $$code -ne 0 ]; then echo "== NOT AUDITED: $$(echo "$$out" | tail -1)"; \
	 else echo "$$out" | head -1; fi

format: $(VENV)/dev.stamp
	@$(RUN) -m ruff check --fix . ; $(RUN) -m ruff format .
