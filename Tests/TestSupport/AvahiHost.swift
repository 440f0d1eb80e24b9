import FoundationEssentials

/// A host with an mDNS responder: a private D-Bus and the real avahi-daemon in its own network namespace.
///
/// The bus is a unix socket and therefore reachable from every network namespace. A single `AvahiHost` has only the
/// loopback interface, so it resolves services to 127.0.0.1.
package actor AvahiHost {
    package nonisolated let name: String
    package nonisolated let namespace: NetworkNamespace
    private nonisolated let scratch: ScratchFolder
    private nonisolated let folder: String
    private var bus: Program?
    private var avahi: Program?

    /// Starts a separate host.
    ///
    /// `settings` adds or replaces keys in the `[server]` section of avahi-daemon.conf(5).
    package init(_ name: String = "rig", in scratch: ScratchFolder, settings: [String: String] = [:]) async throws {
        let namespace = try await NetworkNamespace(in: scratch)
        try await self.init(name, interface: "lo", namespace: namespace, in: scratch, settings: settings)
    }

    /// Starts a host on an interface that is up in the namespace.
    init(
        _ name: String,
        interface: String,
        namespace: NetworkNamespace,
        in scratch: ScratchFolder,
        settings: [String: String]
    ) async throws {
        self.name = name
        self.namespace = namespace
        self.scratch = scratch
        let folderName = "\(name)-\(namespace.processID)"
        folder = try scratch.makeFolder(folderName)
        // avahi-daemon uses the first of two equal keys, so each key is written once.
        let server = [
            "host-name": name, "use-ipv4": "yes", "use-ipv6": "yes", "allow-interfaces": interface,
            "enable-dbus": "yes",
        ].merging(settings) { $1 }.map { "\($0.key)=\($0.value)" }.joined(separator: "\n")
        try scratch.write(
            """
            [server]
            \(server)
            [wide-area]
            enable-wide-area=no
            [publish]
            publish-hinfo=no
            publish-workstation=no

            """,
            to: "\(folderName)/avahi.conf"
        )
        try scratch.write(
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
            <type>system</type><listen>unix:path=\(folder)/bus</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/>
            <allow receive_sender="*"/><allow send_type="method_call"/><allow send_type="signal"/></policy>
            </busconfig>

            """,
            to: "\(folderName)/bus.conf"
        )
        try await startBus()
        try await startAvahi()
    }

    package nonisolated var busAddress: String { "unix:path=\(folder)/bus" }

    /// The environment that makes a program use this host's Avahi.
    package nonisolated var environment: [String: String] { ["DBUS_SYSTEM_BUS_ADDRESS": busAddress] }

    /// Starts a program on this host.
    package nonisolated func start(
        _ command: String,
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        input: Program.Input = .nothing
    ) async throws -> Program {
        try await Program(
            command,
            arguments,
            in: scratch,
            environment: self.environment.merging(environment) { $1 },
            input: input,
            namespace: namespace
        )
    }

    /// Runs a program on this host to its end and returns its standard output.
    @discardableResult
    package nonisolated func run(
        _ command: String,
        _ arguments: [String] = [],
        within limit: Duration = eventLimit
    ) async throws -> [String] {
        try await Program.run(
            command,
            arguments,
            in: scratch,
            environment: environment,
            namespace: namespace,
            within: limit
        )
    }

    /// Returns when avahi-daemon has probed its host name and is RUNNING.
    package func startAvahi() async throws {
        let avahi = try await startedAvahi()
        try await avahi.waitForLine("Server startup complete")
    }

    /// Starts avahi-daemon and does not wait for it.
    @discardableResult
    package func startedAvahi() async throws -> Program {
        let avahi = try await start(
            "avahi-daemon",
            ["-f", "\(folder)/avahi.conf", "--no-rlimits", "--no-chroot", "--no-drop-root"]
        )
        self.avahi = avahi
        return avahi
    }

    package func startBus() async throws {
        // A killed bus leaves its socket file, and a new bus cannot bind to it.
        try? FileManager.default.removeItem(atPath: "\(folder)/bus")
        let bus = try await start(
            "dbus-daemon",
            ["--config-file=\(folder)/bus.conf", "--nofork", "--nopidfile", "--print-address=1"]
        )
        self.bus = bus
        try await bus.waitForLine("unix:path=")
    }

    /// Kills avahi-daemon (SIGKILL), without goodbye packets.
    package func killAvahi() async throws {
        avahi?.kill()
        _ = try await avahi?.exitStatus()
    }

    /// Stops avahi-daemon (SIGTERM), with goodbye packets.
    package func stopAvahi() async throws {
        avahi?.terminate()
        _ = try await avahi?.exitStatus()
    }

    /// Kills and starts avahi-daemon; returns when it is RUNNING.
    package func restartAvahi() async throws {
        try await killAvahi()
        try await startAvahi()
    }

    /// Kills the bus. avahi-daemon exits when it loses its bus.
    package func killBus() async throws {
        bus?.kill()
        _ = try await bus?.exitStatus()
        _ = try await avahi?.exitStatus()
    }

    /// Stops avahi-daemon with SIGSTOP: it answers no request and keeps its bus name.
    package func freezeAvahi() { avahi?.freeze() }

    package func thawAvahi() { avahi?.thaw() }
    /// Takes the link down: the host disappears from the network without a goodbye.
    ///
    /// Only for a host of an `MDNSNetwork`.
    package nonisolated func linkDown() async throws { try await run("ip", ["link", "set", "eth0", "down"]) }

    package nonisolated func linkUp() async throws { try await run("ip", ["link", "set", "eth0", "up"]) }
}
