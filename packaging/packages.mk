# SPDX-License-Identifier: GPL-2.0-only
# Packages for Debian and for systems with rpm; included by the Makefile. Both are built from one tree
# of sources, which has the built dashboard, and both install what `make install` does.

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' controller/ebbgate/__init__.py)
VERSION_DAY := $(shell sed -n 's/^\#\# $(VERSION) (\([0-9-]*\))$$/\1/p' CHANGELOG.md) UTC
PACKAGES := $(BUILD)/packages
SOURCE_TREE := $(PACKAGES)/ebbgate-$(VERSION)
# What `make install` without options has put there, whatever PREFIX this build is given.
LOCAL_FILES = $(foreach file,$(INSTALLED) $(BCC_INSTALLED),$(if $(filter $(UNITDIR)/%,$(file)),\
	$(file:$(UNITDIR)/%=/usr/local/lib/systemd/system/%),$(file:$(PREFIX)/%=/usr/local/%)))
# What a build of packages must not take from this make.
CLEAN_ENV := env -u MAKEFLAGS -u MAKELEVEL -u PYTHONPATH -u PYTHONPYCACHEPREFIX

.PHONY: source-tree deb deb-arm64 rpm test-package
source-tree: webui
	rm -rf $(SOURCE_TREE)
	umask 022; mkdir -p $(SOURCE_TREE)/webui/dist; cp -r packaging/debian $(SOURCE_TREE)/debian
	$(SOURCES) -z | { xargs -0 ls -d 2> /dev/null || true; } | tar -cf - --mode=u=rwX,go=rX -T - | tar -xf - -C $(SOURCE_TREE)
	install -m 644 $(UI)/* $(SOURCE_TREE)/webui/dist
	packaging/debian-changelog $(VERSION) '$(VERSION_DAY)' > $(SOURCE_TREE)/debian/changelog
	cp packaging/rpm/ebbgate.spec $(SOURCE_TREE)/ebbgate.spec
	sed -i -e '/^#LOCAL-INSTALL#$$/ { r packaging/local-install.sh' -e 'd }' \
		$(SOURCE_TREE)/debian/ebbgate.preinst $(SOURCE_TREE)/ebbgate.spec
	sed -i -e 's|@VERSION@|$(VERSION)|g' -e 's|@LOCAL_FILES@|$(LOCAL_FILES)|' \
		-e 's|@RPM_DAY@|$(shell LC_ALL=C date -u -d '$(VERSION_DAY)' '+%a %b %d %Y')|' \
		$(SOURCE_TREE)/debian/ebbgate.preinst $(SOURCE_TREE)/ebbgate.spec
	@# The same for everybody, whatever the umask: the modes are part of the packages of sources.
	chmod -R u=rwX,go=rX $(SOURCE_TREE)
	find $(SOURCE_TREE) -exec touch --no-dereference --date='$(VERSION_DAY)' {} +
	tar --sort=name --owner=0 --group=0 --numeric-owner --exclude=$(notdir $(SOURCE_TREE))/debian -C $(PACKAGES) -cf - $(notdir $(SOURCE_TREE)) | \
		gzip -n > $(SOURCE_TREE).tar.gz

deb: source-tree | $(BUILD)/.deps-build $(BUILD)/.deps-package ## Debian packages and their source (build/packages)
	cd $(SOURCE_TREE) && $(CLEAN_ENV) dpkg-buildpackage --no-sign --build=full
	@ls -1 $(PACKAGES)/*.deb

deb-arm64: venv deb | $(BUILD)/.deps-lab ## the Debian packages for arm64, cross-compiled in a bare Debian (build/packages/arm64)
	$(PY) -m tests.package.cross

RPM_FOLDERS = --define '_topdir $(PACKAGES)/rpm' --define '_sourcedir $(PACKAGES)' \
	--define '_rpmdir $(PACKAGES)/rpm' --define '_srcrpmdir $(PACKAGES)/rpm' \
	--define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm'

# From the source package, as anybody can build it. The names of what it needs to be built are not Debian's, hence --nodeps.
rpm: source-tree | $(BUILD)/.deps-build $(BUILD)/.deps-package ## packages for systems with rpm, and their source (build/packages/rpm)
	rm -rf $(PACKAGES)/rpm
	mkdir -p $(PACKAGES)/rpm
	$(CLEAN_ENV) rpmbuild -bs --nodeps --quiet $(RPM_FOLDERS) $(SOURCE_TREE)/ebbgate.spec
	$(CLEAN_ENV) rpmbuild --rebuild --nodeps --quiet $(RPM_FOLDERS) $(PACKAGES)/rpm/*.src.rpm
	@ls -1 $(PACKAGES)/rpm/*.rpm

test-package: venv deb rpm | $(BUILD)/.deps-lab ## install, upgrade, remove and purge the packages in bare systems of Debian; lintian
	$(call tier,package,$(PY) -m pytest --durations=10 tests/package $(K))
