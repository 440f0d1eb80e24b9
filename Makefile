# What the build and the tests need from Debian or Ubuntu, besides Swift 6.3; this is the only list.
PACKAGES = libavahi-client-dev libpng-dev libqrencode-dev libsqlite3-dev libturbojpeg0-dev libusbmuxd-dev libyuv-dev zlib1g-dev \
	adb avahi-daemon avahi-utils chromium-headless-shell curl dbus etcd-client etcd-server fish gcc iproute2 jq libc6-dev \
	libimobiledevice-utils libusb-1.0-0-dev librsvg2-bin libusbmuxd-tools man-db mandoc nodejs openssh-client openssh-server \
	podman procps prometheus python3 python3-venv runc socat systemd usbmuxd util-linux zbar-tools zsh

PREFIX ?= /usr/local
DESTDIR ?=
BUILT ?= .build/release
# The environment that the browser test makes.
PYTHON ?= $(CURDIR)/.build/rig/venv-playwright/bin/python3
OURS = Package.swift Sources Tests
# What is installed, below PREFIX. Debian's zsh has a folder of its own for packages.
UNITFILES = system/patchbayd.service system/patchbayd.socket system/patchbayd-tcp.socket user/patchbayd.service
UNITS = lib/systemd/system lib/systemd/user
COMPLETIONS = share/bash-completion/completions/patchbay share/fish/vendor_completions.d/patchbay.fish \
	share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)/_patchbay
# The manual pages have the date of the last commit.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)

help: ## show this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

setup: ## install what the build and the tests need (apt, as root)
	@packaging/packages "$(MAKECMDGOALS)" $(PACKAGES)

build: setup ## build the two programs for use, without dependency on an installed Swift
	Sources/CVersion/stamp
	# With Swift inside, a program exports every symbol of it, for nobody: that is 3 MB, half of it read at each start.
	swift build -c release --static-swift-stdlib -Xlinker --no-export-dynamic --product patchbayd
	swift build -c release --static-swift-stdlib -Xlinker --no-export-dynamic --product patchbay

say-build:
	@test -x .build/debug/patchbay || echo "Building for the first time, which takes two to ten minutes on two cores."

man: ## write the manual pages of what `make build` built to .build/man
	@test -x $(BUILT)/patchbayd || { echo "$(BUILT)/patchbayd is missing: run make build first"; exit 1; }
	packaging/manual $(BUILT) .build/man

example: ## write config/patchbay.example.toml from the table of keys
	swift build --product patchbayd
	.build/debug/patchbayd --print-example >config/patchbay.example.toml

test: setup say-build ## build everything and run every test, in several processes at once
	swift build --build-tests $(SWIFT_BUILD_FLAGS)
	Tests/run

e2e-systemd: PACKAGES += debootstrap dpkg-dev systemd-container
e2e-systemd: setup ## boot a small Debian with the service under a real systemd, and six as a team (root; minutes)
	swift build
	Tests/TestSupport/systemd/boot
	Tests/TestSupport/systemd/lab

soak: setup ## the long forms of the tests that have one (minutes to hours; PATCHBAY_SOAK_MINUTES=30)
	swift build --build-tests
	PATCHBAY_SOAK=1 swift test --skip-build --no-parallel --filter 'AccessControlTests|SoakTests|ScaleTests|GrantTerminationTests|ConcurrentRedemptionTests|RevocationRaceTests|AgentGrantTests|RelaunchScheduleTests'

crash: setup ## kill the broker and the command line at every system call that changes a file (20 minutes): ARGS="--only Join"
	swift build
	Tests/EndToEndTests/Crash/crash.py .build/debug $(ARGS)

campaign: setup say-build ## try random faults of everything around the broker, with an oracle (root): SEED=1 MINUTES=10 ONLY=relaunch,replug ARGS="--subject team"
	swift build
	Tests/Campaign/campaign.py --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10) $(if $(ONLY),--only $(ONLY)) $(ARGS)

tsan: setup ## look for data races in the data path with ThreadSanitizer (a build of its own, minutes)
	swift build --build-tests --sanitize=thread --scratch-path .build-tsan
	clang -O2 -shared -fPIC -o .build-tsan/mutex.so Tests/Tsan/mutex.c
	TSAN_OPTIONS=exitcode=66 LD_PRELOAD=$(CURDIR)/.build-tsan/mutex.so swift test --sanitize=thread \
		--scratch-path .build-tsan --skip-build --no-parallel --filter '^(SystemIO|Tunnels|Devices)Tests'

fuzz: setup ## try the parsers on made-up input with libFuzzer (a build of its own): ARGS="--seconds 60 --only token"
	Tests/FuzzTests/run $(ARGS)

demo: setup say-build ## a phone, two apps and an agent in a minute, then a shell: STEP=1 waits for Enter, ARGS=--kinds shows every kind of app, ARGS=--android an Android phone
	swift build
	Tests/TestSupport/demo/run $(ARGS)

demo-recording: setup ## record the demo as docs/demo.svg, for README
	swift build
	Tests/TestSupport/demo/record docs/demo.svg

dashboard-pictures: setup ## take README's pictures of the dashboard (after the browser test, which installs Playwright)
	swift build
	Tests/TestSupport/demo/run --kinds --once --then $(PYTHON) $(CURDIR)/Tests/EndToEndTests/Dashboard/pictures.py $(CURDIR)/docs

bench: build ## compare with iproxy (BENCH_IPROXY=path), socat and direct connections: ARGS="--only connect --rounds 7"
	swift build -c release --product bench
	$(BUILT)/bench $(ARGS)

bench-agents: build ## compare MCP calls with direct ones, FastMCP's proxy and ContextForge (PyPI): ARGS="--rounds 5 --calls 200"
	python3 Tests/BenchAgents/bench.py --built $(BUILT) $(ARGS)

bench-remote: build ## compare a stream through a remote broker with socat over OpenSSL: ARGS="--rounds 5 --megabytes 512"
	python3 Tests/BenchAgents/remote.py --built $(BUILT) $(ARGS)

bench-android: build ## compare tunnels to an Android phone with adb forward and adb's smart socket: ARGS="--rounds 5 --idle 5000"
	python3 Tests/BenchAgents/android.py --built $(BUILT) $(ARGS)

bench-states: build ## measure the state debugger with messages of 2 MB: ARGS="--count 500 --size 2000000"
	python3 Tests/BenchAgents/states.py --built $(BUILT) $(ARGS)

bench-team: build ## measure a team of brokers on etcd: ARGS="--only changes --hosts 20"
	python3 Tests/BenchAgents/team.py --built $(BUILT) $(ARGS)

bench-dashboard: build ## measure the dashboard in Chromium, and calls with and without activity (after the browser test): ARGS="--seconds 20"
	$(PYTHON) Tests/BenchAgents/dashboard.py --built $(BUILT) $(ARGS)

bench-launches: build ## measure a broker at rest that watches many apps: ARGS="--count 200 --idle 5"
	python3 Tests/BenchAgents/launches.py --built $(BUILT) $(ARGS)

run: setup ## run the broker here, with your own configuration
	swift run patchbayd

format: ## bring our code into shape
	swift format -i -r -p $(OURS)

lint: ## say where our code is out of shape
	swift format lint -s -r -p $(OURS)

install: $(if $(wildcard $(BUILT)/patchbayd),,build) ## install what `make build` builds: PREFIX=/usr/local DESTDIR=
	# Without what only a debugger reads, the broker has half the size.
	install -s -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(BUILT)/patchbay $(BUILT)/patchbayd
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,$(UNITS) $(dir $(COMPLETIONS)))
	for unit in $(UNITFILES); do \
		sed 's,/usr/bin/,$(PREFIX)/bin/,; s,/usr/share/,$(PREFIX)/share/,' systemd/$${unit#system/} \
			>$(DESTDIR)$(PREFIX)/lib/systemd/$$unit || exit 1; \
		chmod 644 $(DESTDIR)$(PREFIX)/lib/systemd/$$unit; \
	done
	install -D -m 644 systemd/patchbay.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/patchbay.conf
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/patchbay README.md config/patchbay.example.toml
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/patchbay/profiles config/profiles/*.toml
	packaging/manual $(BUILT) $(DESTDIR)$(PREFIX)/share/man
	cd $(DESTDIR)$(PREFIX) && for script in $(COMPLETIONS); do \
		case $$script in */bash*) shell=bash ;; */zsh*) shell=zsh ;; *) shell=fish ;; esac; \
		$(abspath $(BUILT))/patchbay --generate-completion-script $$shell | sed '1{/^#!/d}' >$$script || exit 1; \
		chmod 644 $$script; \
	done
	# Every value is commented out, so that a later version may change a default.
	test -e $(DESTDIR)/etc/patchbay/patchbay.toml || { install -d $(DESTDIR)/etc/patchbay && \
		sed -E '/^(\[+[a-z]+\]+|#.*|)$$/!s/^/# /' config/patchbay.example.toml \
			>$(DESTDIR)/etc/patchbay/patchbay.toml && chmod 644 $(DESTDIR)/etc/patchbay/patchbay.toml; }
	@test -n "$(DESTDIR)" || echo "Start it:" \
		"sudo sh -c 'systemd-sysusers && systemctl daemon-reload && systemctl enable --now patchbayd'" \
		"&& sudo usermod -aG patchbay $${SUDO_USER:-\"\$$USER\"}"

uninstall: ## remove what `make install` installed, but neither the configuration nor the state
	@test -n "$(DESTDIR)" || systemctl disable --now patchbayd.socket patchbayd-tcp.socket patchbayd 2>/dev/null || true
	cd $(DESTDIR)$(PREFIX) && rm -f bin/patchbay bin/patchbayd $(addprefix lib/systemd/,$(UNITFILES)) $(COMPLETIONS) \
		lib/sysusers.d/patchbay.conf share/man/man1/patchbay.1 share/man/man5/patchbay.toml.5 share/man/man8/patchbayd.8
	rm -rf $(DESTDIR)$(PREFIX)/share/patchbay $(DESTDIR)$(PREFIX)/share/doc/patchbay

deb: PACKAGES += dpkg-dev lintian
deb: build ## build the Debian package in .build/packages and check it with lintian
	lintian --fail-on error "$$(packaging/deb $(BUILT) .build/packages)"

dist: build ## build a tarball with the stripped programs in .build/packages
	packaging/dist $(BUILT) .build/packages

clean: ## remove everything that was built
	rm -rf .build .build-fuzz .build-tsan

.PHONY: help setup build say-build man example test soak campaign crash tsan fuzz e2e-systemd demo bench bench-agents bench-remote bench-android bench-states bench-team bench-dashboard bench-launches demo-recording dashboard-pictures run format lint install uninstall deb dist \
	clean
