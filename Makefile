# SPDX-License-Identifier: GPL-2.0-only
# Every command of the project; `make help` lists them. Build output goes only to build/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules

BUILD := $(CURDIR)/build
VENV := $(BUILD)/venv
PY := $(VENV)/bin/python
# The product and its tests run on the distribution's Python, whatever else comes first in PATH.
SYSTEM_PYTHON := /usr/bin/python3
PROBE := $(BUILD)/ebbgate-probe
export PYTHONPYCACHEPREFIX := $(BUILD)/pycache
# As images of containers set it: else each of the many programs that tests start is compiled again.
unexport PYTHONDONTWRITEBYTECODE
export HYPOTHESIS_STORAGE_DIRECTORY := $(BUILD)/hypothesis
# npm keeps its compiled modules in the temporary folder otherwise, and leaves them there.
export NODE_COMPILE_CACHE := $(BUILD)/node-compile-cache
export PYTHONPATH := $(CURDIR)/controller:$(CURDIR)/packaging:$(CURDIR)

PREFIX ?= /usr/local
DESTDIR ?=
UNITDIR ?= $(PREFIX)/lib/systemd/system
ZSH_COMPLETION ?= $(PREFIX)/share/zsh/site-functions/_ebbgate
# Rules name paths without quotes: `rm -rf` would take one with a space for two.
wrong_path = $(or $(if $(word 2,$(1)),has a space),$(if $(filter-out /%,$(1)),does not begin with /))
$(foreach name,CURDIR PREFIX DESTDIR UNITDIR ZSH_COMPLETION,$(if $(call wrong_path,$($(name))),\
	$(error $(name)='$($(name))' $(call wrong_path,$($(name))): choose another folder)))
BINDIR := $(PREFIX)/bin
SBINDIR := $(PREFIX)/sbin
LIBDIR := $(PREFIX)/lib/ebbgate
SCRIPTDIR := $(LIBDIR)/lvm-scripts
# Where systemd looks for units.
UNIT_FOLDERS := $(addsuffix /systemd/system,/etc /run /usr/local/lib /lib /usr/lib)
SCRIPTS := $(wildcard lvm-scripts/*-attach lvm-scripts/*-detach) lvm-scripts/stack-status
UNITS := ebbgated.service ebbgate-restore.service ebbgate-warm.socket ebbgate-warm@.service ebbgate-web.service
SYSUSERSDIR := $(PREFIX)/lib/sysusers.d
MANDIR := $(PREFIX)/share/man
MAN_PAGES := ebbgate.8 ebbgated.8 ebbgate-probe.8 ebbgate-web.8 ebbgate-policy.5 ebbgate-signals.7 ebbgate-messages.7
man_page = $(MANDIR)/man$(subst .,,$(suffix $(1)))/$(1)
BASH_COMPLETION := $(PREFIX)/share/bash-completion/completions/ebbgate
FISH_COMPLETION := $(PREFIX)/share/fish/vendor_completions.d/ebbgate.fish
LOG_CATALOG := $(PREFIX)/lib/systemd/catalog/ebbgate.catalog
# Of install-probe-bcc.
BCC_MAN_PAGES := ebbgate-probe-bcc.8
BCC_INSTALLED = $(SBINDIR)/ebbgate-probe-bcc $(UNITDIR)/ebbgated.service.d/probe-bcc.conf \
	$(call man_page,$(BCC_MAN_PAGES))
# Files outside of LIBDIR, which is ebbgate's alone.
INSTALLED = $(BINDIR)/ebbgate $(addprefix $(SBINDIR)/,ebbgated ebbgate-probe ebbgate-web) \
	$(addprefix $(UNITDIR)/,$(UNITS)) $(SYSUSERSDIR)/ebbgate.conf \
	$(foreach page,$(MAN_PAGES),$(call man_page,$(page))) \
	$(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION) $(LOG_CATALOG)
STATEDIR := /var/lib/ebbgate
UI := $(BUILD)/webui

# Packages set these: empty, their own tools compile the modules; yes, the group is always there.
COMPILE ?= yes
GROUP_CONF ?=

# Arguments of bench and demo.
S ?=
V ?=
N ?=
SEED ?=
KEEP ?=
# Passed through to pytest: make test-unit K="-k journal"
K ?=
# 1: the golden texts (test-replay, test-shell) are rewritten, to be reviewed
UPDATE ?=
LAB_TESTS ?= not full

# Tracked and new files; a file that is only deleted in the work tree is no longer looked at.
SOURCES = git ls-files -co --exclude-standard
SHELL_SOURCES = { $(SOURCES) | xargs -r grep -lsE '^\#!.*\b(ba|da)?sh\b'; $(SOURCES) '*.sh'; } | sort -u
C_SOURCES = $(SOURCES) '*.c' '*.h' | { xargs -r ls -d 2>/dev/null || true; }

# $(call tier,NAME,COMMAND): runs a tier of tests and closes it with one line. TIER_FD: reports
# its start at once, since make buffers the rest until the tier is over (`make test`).
TIER_FD ?= 1
define tier
	@echo "== $(1)" >&$(TIER_FD); start=$$SECONDS; \
	if $(2); then echo "== tier $(1): ok, $$((SECONDS - start)) s"; \
	else code=$$?; echo "== tier $(1): FAILED, $$((SECONDS - start)) s"; exit $$code; fi
endef

# $(call fetched,WHAT): behind a command that needs a package registry; what its failure means.
fetched = || { echo "make: $(1) could not be fetched (its own message is above); try: check the network, then make again" >&2; exit 1; }

.PHONY: all help
all: probe ## build everything

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | \
		awk -F ':.*## ' '{ printf "  %-18s %s\n", $$1, $$2 }'

include packaging/packages.mk

# ---- what a fresh machine needs ------------------------------------------------------------------
.PHONY: deps venv lock
deps: $(BUILD)/.deps-run $(BUILD)/.deps-build $(BUILD)/.deps-check $(BUILD)/.deps-lab $(BUILD)/.deps-web ## install the Debian packages that are missing (root or sudo)

# One after the other, also with -j: apt waits for no other one that updates its lists.
$(BUILD)/.deps-%: packaging/deps.txt packaging/install-deps
	@mkdir -p $(BUILD)
	flock $(BUILD)/.deps.lock packaging/install-deps $*
	@touch $@

venv: $(VENV)/.stamp ## development tools, pinned, in build/venv

$(VENV)/.stamp: tests/requirements.lock | $(BUILD)/.deps-run $(BUILD)/.deps-check
	rm -rf $(VENV)
	$(SYSTEM_PYTHON) -m venv --system-site-packages $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $< $(call fetched,the development tools)
	@touch $@

lock: ## pin the newest development tools in tests/requirements*.lock
	$(SYSTEM_PYTHON) -m venv --clear $(BUILD)/lock
	$(BUILD)/lock/bin/pip install --quiet --disable-pip-version-check pip-tools
	cd tests && for name in requirements requirements-web requirements-api; do \
		$(BUILD)/lock/bin/pip-compile --quiet --upgrade --generate-hashes --strip-extras \
			--no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
			--output-file $$name.lock $$name.in; \
		sed -i '1i # SPDX-License-Identifier: GPL-2.0-only' $$name.lock; done

.PHONY: venv-web
venv-web: $(BUILD)/venv-web/.stamp $(BUILD)/venv-api/.stamp ## current FastAPI and pydantic; schemathesis

# Each of its own: what a tool needs must not be what the server runs on.
$(BUILD)/venv-web/.stamp $(BUILD)/venv-api/.stamp: $(BUILD)/venv-%/.stamp: \
		tests/requirements-%.lock | $(BUILD)/.deps-run $(BUILD)/.deps-check
	rm -rf $(@D)
	$(SYSTEM_PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# ---- build ---------------------------------------------------------------------------------------
.PHONY: probe
probe: | $(BUILD)/.deps-run $(BUILD)/.deps-build ## build the eBPF probe (build/ebbgate-probe)
	$(MAKE) -C bpf BUILD=$(BUILD)

.PHONY: manual
manual: | $(BUILD)/.deps-run ## manual pages, completion and log catalogue, from the code (build/man, ...)
	$(SYSTEM_PYTHON) -m manual.pages $(BUILD)/man
	$(SYSTEM_PYTHON) -m manual.completion $(BUILD)/completion
	$(SYSTEM_PYTHON) -m manual.log_catalog $(BUILD)/catalog

# ---- the dashboard -------------------------------------------------------------------------------
# Its packages stay beside it; what they are is in package-lock.json, which the stamps follow.
.PHONY: webui check-webui test-webui test-browser screenshot
WEBUI_SOURCES = $(shell find webui/src webui/build.mjs -type f)
WEBUI_MODULES := webui/node_modules/.stamp
BROWSER_MODULES := tests/browser/node_modules/.stamp
NODE := env PATH=$(VENV)/bin:$$PATH

webui: $(UI)/app.js ## build the dashboard (build/webui)

# Node.js comes with the development tools: Debian 12's is too old.
%/node_modules/.stamp: %/package-lock.json | venv
	cd $* && $(NODE) npm ci --no-progress --loglevel=error $(call fetched,the packages of $*)
	@touch $@

$(UI)/app.js: $(WEBUI_SOURCES) $(WEBUI_MODULES)
	cd webui && $(NODE) npm run --silent build

check-webui: $(WEBUI_MODULES) ## types, lint and format of the dashboard; the types against the API
	cd webui && $(NODE) npm run --silent check

test-webui: $(WEBUI_MODULES) ## the dashboard's arithmetic
	$(call tier,webui,$(NODE) npm --prefix webui run --silent test)

test-browser: venv $(UI)/app.js $(BROWSER_MODULES) | $(BUILD)/.deps-web ## the dashboard in a real browser, with the real server
	$(call tier,browser,$(NODE) $(PY) -m pytest tests/browser $(K))

screenshot: venv $(UI)/app.js $(BROWSER_MODULES) | $(BUILD)/.deps-web ## webui/docs/overview.png, the picture in README.md
	$(NODE) $(PY) -m tests.browser.screenshot

# ---- checks --------------------------------------------------------------------------------------
.PHONY: check check-quick check-python check-shell check-c check-house fmt
check: check-python check-shell check-c check-webui check-house ## format, lint, types, layers, shellcheck, clang-format, house rules

check-quick: venv check-c ## the half of it that takes seconds: before each commit
	$(VENV)/bin/ruff format --check --quiet
	$(VENV)/bin/ruff check --quiet
	$(PY) -m tests.house_rules

check-python: venv
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy
	cd controller && $(VENV)/bin/lint-imports --config ../pyproject.toml --cache-dir $(BUILD)/import-linter

check-shell: | $(BUILD)/.deps-check
	$(SHELL_SOURCES) | xargs -r shellcheck

check-c: | $(BUILD)/.deps-check
	$(C_SOURCES) | xargs -r clang-format --dry-run -Werror

check-house: venv
	$(PY) -m tests.house_rules

fmt: venv | $(BUILD)/.deps-check ## format Python and C
	$(VENV)/bin/ruff format
	$(VENV)/bin/ruff check --fix --exit-zero --quiet
	$(C_SOURCES) | xargs -r clang-format -i

# ---- tests ---------------------------------------------------------------------------------------
.PHONY: test test-quick test-ready test-unit test-bpf test-replay test-shell test-api test-openapi
.PHONY: test-web-current test-prometheus test-lab test-full
test: ## all tests, the lab included
	@$(MAKE) --no-print-directory test-quick
	@$(MAKE) --no-print-directory test-lab

# The longest first, two at a time: what waits leaves its processor to the other.
QUICK := test-browser test-unit test-api test-prometheus test-replay test-shell test-webui test-bpf
test-quick: test-ready ## all tests but the lab, two tiers at a time
	@exec 3>&1; $(MAKE) --no-print-directory -j2 --output-sync=target TIER_FD=3 $(QUICK)

# Whatever has to be brought or built, before two tiers would do so at the same time.
test-ready: venv venv-web $(UI)/app.js $(BROWSER_MODULES) | $(BUILD)/.deps-build $(BUILD)/.deps-lab $(BUILD)/.deps-web

test-unit: venv ## pure core, store, command line; no root, seconds
	$(call tier,unit,$(PY) -m pytest -m '$(LAB_TESTS)' tests/unit $(K))

test-bpf: venv probe | $(BUILD)/.deps-lab ## the probe's C with sanitizers; as root, the probe on this machine's own kernel
	$(call tier,bpf_host,$(PY) -m pytest tests/bpf_host $(K))

test-replay: venv ## recorded probe streams against their golden decisions (UPDATE=1: write these anew)
	$(call tier,replay,EBBGATE_UPDATE_GOLDEN=$(UPDATE) $(PY) -m pytest tests/replay $(K))

test-shell: venv ## what lvm-scripts print, against reviewed texts (UPDATE=1: write these anew)
	$(call tier,shell,EBBGATE_UPDATE_GOLDEN=$(UPDATE) $(PY) -m pytest -m '$(LAB_TESTS)' tests/shell $(K))

test-api: test-openapi test-web-current ## the whole OpenAPI on Debian's FastAPI and on a current one

test-openapi: venv venv-web
	$(call tier,api,$(PY) -m pytest -m '$(LAB_TESTS)' tests/api $(K))

test-web-current: venv-web
	$(call tier,web_current,EBBGATE_OTHER_PYTHON=$(SYSTEM_PYTHON) \
		$(BUILD)/venv-web/bin/python -m pytest tests/unit/web $(K))

test-prometheus: venv | $(BUILD)/.deps-web ## a real Prometheus scrapes ebbgate-web; alerts and the dashboard's queries
	$(call tier,prometheus,$(PY) -m pytest tests/prometheus $(K))

test-lab: venv probe $(UI)/app.js $(BROWSER_MODULES) | $(BUILD)/.deps-lab $(BUILD)/.deps-web ## real caches on a stock kernel in QEMU
	$(call tier,lab,$(NODE) $(PY) -m pytest --durations=15 -m '$(LAB_TESTS)' tests/lab $(K))

test-full: ## the same with every long variant, and the packages
	@$(MAKE) --no-print-directory test LAB_TESTS='full or not full'
	@$(MAKE) --no-print-directory test-package

# ---- the lab, for people -------------------------------------------------------------------------
.PHONY: bench demo
bench: venv probe | $(BUILD)/.deps-lab ## list the scenarios; S=NAME runs one (V= variant, N= repetitions, SEED=, TRACE=, ADD=1: to kept runs)
	@$(NODE) $(PY) -m tests.bench $(S) $(if $(V),--variant $(V)) $(if $(N),--repetitions $(N)) $(if $(SEED),--seed $(SEED)) \
		$(if $(TRACE),--trace $(TRACE)) $(if $(ADD),--add)

demo: venv probe webui | $(BUILD)/.deps-lab ## a real bcache, stock against ebbgate, live (KEEP=1: stay)
	@$(PY) -m tests.lab.demo $(if $(KEEP),--keep)

# ---- install -------------------------------------------------------------------------------------
# Folders that are not ebbgate's alone keep their mode, which `install -d` would set.
.PHONY: install uninstall clean
install: probe webui manual ## to PREFIX (/usr/local), DESTDIR respected
	umask 022; mkdir -p $(DESTDIR)$(BINDIR) $(DESTDIR)$(SBINDIR) $(DESTDIR)$(UNITDIR)
	install -d $(DESTDIR)$(LIBDIR)
	@# Beside the modules that are there: without these nothing restores the knobs, should this one fail.
	rm -rf $(DESTDIR)$(LIBDIR)/new
	cd controller && find ebbgate -name '*.py' -print0 | \
		xargs -0 -I{} install -D -m 644 {} $(DESTDIR)$(LIBDIR)/new/{}
	$(if $(COMPILE),umask 022; env -u PYTHONPYCACHEPREFIX $(SYSTEM_PYTHON) -m compileall -q \
		-s '$(DESTDIR)$(LIBDIR)/new' -p '$(LIBDIR)' $(DESTDIR)$(LIBDIR)/new)
	rm -rf $(DESTDIR)$(LIBDIR)/ebbgate
	mv $(DESTDIR)$(LIBDIR)/new/ebbgate $(DESTDIR)$(LIBDIR)/ebbgate
	rmdir $(DESTDIR)$(LIBDIR)/new
	install -m 755 $(PROBE) $(DESTDIR)$(SBINDIR)/ebbgate-probe
	install -d $(DESTDIR)$(LIBDIR)/policies
	install -m 644 policies/*.yaml policies/schema.json policies/README.md $(DESTDIR)$(LIBDIR)/policies
	install -d $(DESTDIR)$(SCRIPTDIR)
	install -m 644 lvm-scripts/*.sh lvm-scripts/README.md $(DESTDIR)$(SCRIPTDIR)
	install -m 755 $(SCRIPTS) $(DESTDIR)$(SCRIPTDIR)
	$(call launcher,ebbgate.cli) > $(DESTDIR)$(BINDIR)/ebbgate
	$(call launcher,ebbgate.daemon.main) > $(DESTDIR)$(SBINDIR)/ebbgated
	$(call launcher,ebbgate.web) > $(DESTDIR)$(SBINDIR)/ebbgate-web
	chmod 755 $(DESTDIR)$(BINDIR)/ebbgate $(DESTDIR)$(SBINDIR)/ebbgated $(DESTDIR)$(SBINDIR)/ebbgate-web
	rm -rf $(DESTDIR)$(LIBDIR)/webui
	install -d $(DESTDIR)$(LIBDIR)/webui
	install -m 644 $(UI)/* webui/openapi.json $(DESTDIR)$(LIBDIR)/webui
	for unit in $(UNITS); do sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@SBINDIR@|$(SBINDIR)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		packaging/systemd/$$unit.in > $(DESTDIR)$(UNITDIR)/$$unit; \
		chmod 644 $(DESTDIR)$(UNITDIR)/$$unit; done
	install -D -m 644 packaging/sysusers/ebbgate.conf $(DESTDIR)$(SYSUSERSDIR)/ebbgate.conf
	$(foreach page,$(MAN_PAGES),install -D -m 644 $(BUILD)/man/$(page) $(DESTDIR)$(call man_page,$(page));)
	install -D -m 644 $(BUILD)/completion/ebbgate $(DESTDIR)$(BASH_COMPLETION)
	install -D -m 644 $(BUILD)/completion/_ebbgate $(DESTDIR)$(ZSH_COMPLETION)
	install -D -m 644 $(BUILD)/completion/ebbgate.fish $(DESTDIR)$(FISH_COMPLETION)
	install -D -m 644 $(BUILD)/catalog/ebbgate.catalog $(DESTDIR)$(LOG_CATALOG)
	$(if $(GROUP_CONF),$(group_conf))
	@# One that is there belongs to the probe before: the two must have the same tables.
	@if [[ -e $(DESTDIR)$(SBINDIR)/ebbgate-probe-bcc ]]; then \
		$(MAKE) --no-print-directory install-probe-bcc --old-file=probe --old-file=manual; fi
	@if [[ -z '$(DESTDIR)' ]]; then $(MAKE) --no-print-directory install-group; fi
	@if [[ -z '$(DESTDIR)' && -d /run/systemd/system ]]; then systemctl daemon-reload; $(update_catalog); fi
	@echo "installed; next: ebbgate doctor, then systemctl enable ebbgated ebbgate-web, and systemctl restart ebbgated ebbgate-web"
	$(if $(filter $(UNIT_FOLDERS),$(UNITDIR)),,@echo "systemd does not look for units in $(UNITDIR):" \
		"give also UNITDIR=/usr/local/lib/systemd/system, to make uninstall, too")

.PHONY: install-probe-bcc
install-probe-bcc: probe manual ## also the probe for kernels without BTF; needs python3-bpfcc and kernel headers
	install -D -m 755 $(BUILD)/ebbgate-probe-bcc $(DESTDIR)$(SBINDIR)/ebbgate-probe-bcc
	install -d $(DESTDIR)$(LIBDIR)/bcc
	install -m 644 $(BUILD)/bcc/programs.bcc $(DESTDIR)$(LIBDIR)/bcc
	install -D -m 644 packaging/systemd/probe-bcc.conf $(DESTDIR)$(UNITDIR)/ebbgated.service.d/probe-bcc.conf
	install -D -m 644 $(BUILD)/man/$(BCC_MAN_PAGES) $(DESTDIR)$(call man_page,$(BCC_MAN_PAGES))
	@if [[ -z '$(DESTDIR)' && -d /run/systemd/system ]]; then systemctl daemon-reload; fi

# The user of ebbgate-web; the daemon's files become readable for its group. Without it only the web
# is missing. A package does the same from its own scripts.
.PHONY: install-group
install-group:
	if command -v systemd-sysusers > /dev/null; then systemd-sysusers $(SYSUSERSDIR)/ebbgate.conf; \
	elif command -v useradd > /dev/null && ! getent passwd ebbgate > /dev/null; then \
		useradd --system --user-group --home-dir / --shell /usr/sbin/nologin ebbgate; fi
	if getent group ebbgate > /dev/null; then \
		$(group_conf); \
		install -d -m 2750 -g ebbgate $(STATEDIR); \
		find $(STATEDIR) -maxdepth 1 -name 'history.db*' -type f -exec chgrp ebbgate {} +; \
		$(BINDIR)/ebbgate web-token > /dev/null 2>&1 || $(BINDIR)/ebbgate web-token --new > /dev/null \
			|| echo "changes in the dashboard need a token, once this is mended: ebbgate web-token --new"; \
	else echo "no group ebbgate: ebbgate-web cannot run here"; fi

group_conf = for unit in ebbgated ebbgate-restore; do \
	install -D -m 644 packaging/systemd/group.conf $(DESTDIR)$(UNITDIR)/$$unit.service.d/group.conf; done

# For journalctl -x, which works without it, too.
update_catalog = journalctl --update-catalog || true

# Isolated (-I): a root program must not import from the folder it happens to be started in.
launcher = printf '%s\n' '\#!/usr/bin/python3 -I' '\# SPDX-License-Identifier: GPL-2.0-only' \
	'import sys' '' 'sys.path.insert(0, "$(LIBDIR)")' 'from $(1) import main' '' 'sys.exit(main())'

# Units that start this ebbgate, wherever an earlier UNITDIR or `systemctl edit --full` has put them.
own_units = { grep -lsxF 'ExecStart=$(SBINDIR)/ebbgated' $(addsuffix /ebbgated.service,$(UNIT_FOLDERS)) || true; }
# Services of these names that are not of `make install` are those of a package.
own_services = [[ -z '$(DESTDIR)' && -d /run/systemd/system && ( -e $(UNITDIR)/ebbgated.service || -n $$($(own_units)) ) ]]
PACKAGED_UNIT := /usr/lib/systemd/system/ebbgated.service

uninstall: ## put every knob back, then remove what install put there
	@ran=; if $(own_services); then for unit in ebbgated ebbgate-web; do \
			if systemctl is-active --quiet $$unit; then ran+=" $$unit"; fi; done; \
		systemctl stop ebbgate-web ebbgated || true; fi; \
	if [[ -z '$(DESTDIR)' && -x $(BINDIR)/ebbgate ]] && ! $(BINDIR)/ebbgate restore; then \
		if [[ -n $$ran ]]; then systemctl start $$ran || true; fi; \
		echo "nothing is removed: ebbgate restore has failed (see above); do what its message says, then: make uninstall" >&2; \
		exit 1; fi
	@# Not before: what is not removed must start again at the next boot.
	@if $(own_services); then systemctl disable ebbgate-web ebbgated || true; \
		if [[ -e $(PACKAGED_UNIT) ]]; then \
			echo "those of the package do not run now; next: systemctl enable --now ebbgated ebbgate-web"; fi; fi
	rm -f $(addprefix $(DESTDIR),$(INSTALLED) $(BCC_INSTALLED))
	for unit in ebbgated ebbgate-restore; do rm -rf $(DESTDIR)$(UNITDIR)/$$unit.service.d/group.conf; \
		rmdir $(DESTDIR)$(UNITDIR)/$$unit.service.d 2> /dev/null || true; done
	rm -rf $(DESTDIR)$(LIBDIR)
	@if [[ -z '$(DESTDIR)' && -d /run/systemd/system ]]; then systemctl daemon-reload; $(update_catalog); fi
	@if [[ -z '$(DESTDIR)' ]]; then $(own_units) | while read -r unit; do \
		echo "$$unit stays and starts what is gone now; next: make uninstall UNITDIR=$${unit%/*}"; done; fi
	@echo "removed; history and settings stay in /var/lib/ebbgate and /etc/ebbgate, and the user ebbgate"

clean: ## remove build/
	rm -rf $(BUILD)
