import Client
import FoundationEssentials
import Model

/// The parts of the broker's state that the checks of the machine compare with the machine.
struct BrokerReading {
    /// Nil if the broker does not respond, or refuses this client.
    var status: BrokerStatus?
    /// True if a broker listens.
    var isRunning: Bool
    /// The values of `patchbay config show`. Empty unless the client is an owner.
    var settings: [String: JSON] = [:]
    /// The file from which a running broker has its values; nil if it has none of a file.
    var file: String?
    /// The keys with a value in the file that takes effect after a restart.
    var pending: [String] = []
    /// The phones.
    var devices: [Device] = []
    var tunnels: [Tunnel] = []
    var advertisements = 0
    /// The number of endpoints that Bonjour announces.
    var services = 0

    /// Reads the broker. A part that the client may not read stays empty.
    init(_ status: BrokerStatus?, isRunning: Bool, from client: PatchbayClient) async {
        self.status = status
        self.isRunning = isRunning
        guard status != nil else { return }
        for entry in (try? await client.configuration()) ?? [] {
            // The broker writes values as TOML, whose numbers, strings and arrays are JSON too.
            settings[entry.key] = entry.value.flatMap { try? JSON(parsing: $0) }
            file = file ?? entry.file
            if entry.pending != nil { pending.append(entry.key) }
        }
        devices = (try? await client.devices()) ?? []
        tunnels = (try? await client.tunnels.list()) ?? []
        advertisements = ((try? await client.advertisements.list()) ?? []).count
        services = ((try? await client.endpoints().endpoints) ?? []).count { $0.sources.contains(.bonjour) }
    }

    /// Checks the file with which the broker runs, or would start.
    func configurationCheck(ofBrokerAt address: BrokerAddress) async -> Check {
        let check =
            file.map(ConfigurationFileCheck.init(file:)) ?? ConfigurationFileCheck(ofBrokerAt: address.description)
        let result = await check.run()
        let isService = BrokerService.isBroker(at: address.description)
        if let problem = ConfigurationFileCheck.problem(result, isService: isService, pid: status?.pid) {
            return Check(name: "config", verdict: .init(problem.severity), detail: problem.text, hint: problem.hint)
        }
        if case .unknown(let reason) = result { return .ok("config", "not checked: \(reason)") }
        guard pending.isEmpty else {
            return .warn(
                "config",
                "a restart of the broker applies \(pending.joined(separator: ", ")), which "
                    + "\(file ?? "the file") has changed",
                try: isService ? "sudo systemctl restart patchbayd" : "stop patchbayd with Ctrl-C, and start it again"
            )
        }
        if let file = check.file { return .ok("config", "\(file) is valid") }
        guard isRunning else {
            let other = "to check another one: `patchbay config check FILE`"
            return .ok("config", "no file at the usual places is invalid; \(other)")
        }
        let isOwner = !settings.isEmpty
        return .ok("config", isOwner ? "every key has its default" : "not checked: only an owner learns its file")
    }

    /// Returns the checks of the machine that need neither Avahi nor usbmuxd.
    func machineChecks(socket: String, environment: [String: String]) -> [Check] {
        // Only an owner sees which port and which folder a running broker uses.
        if isRunning, settings.isEmpty { return [ClockCheck().run()] }
        let folder = StateFolderCheck.path(
            configured: settings["broker.state_directory"]?.string,
            socket: socket,
            environment: environment
        )
        let failed = tunnels.filter { if case .failed = $0.state { true } else { false } }
        let ports = PortCheck(
            apiPort: settings["api.tcp"]?.bool == false
                ? nil : settings["api.port"]?.int.flatMap { UInt16(exactly: $0) } ?? 7_282,
            broker: status?.pid,
            failedTunnels: failed,
            isTaken: status?.degradedParts.contains(.api) == true,
            isService: BrokerService.isBroker(at: socket)
        )
        return ports.run() + [folder.map { StateFolderCheck(path: $0).run() }, ClockCheck().run()].compactMap { $0 }
            + descriptors
    }

    /// Returns the checks of Avahi and of the network.
    func networkChecks() -> [Check] {
        let avahi = AvahiCheck().run()
        let types = settings["discovery.types"]?.array?.count ?? 0
        let limits = AvahiLimitCheck(services: services, advertisements: advertisements, types: types + 1)
        return avahi + (status == nil ? [] : limits.run()) + MulticastCheck().run()
            + InterfaceCheck(isAvahiRunning: AvahiCheck().isDaemonRunning).run()
    }

    /// Returns the checks of usbmuxd. The broker's own usbmuxd is compared only if this command would use it too.
    func usbmuxdChecks() -> [Check] {
        let check = UsbmuxdCheck()
        let socket = check.run()
        let address = settings["devices.usbmuxd"]?.string.map { UsbmuxdCheck.path(of: $0) }
        guard status != nil, address == nil || address == check.path, socket.verdict == .ok else { return [socket] }
        let onCable = devices.filter { $0.platform == .ios && $0.transport == .usb }
        return [socket, LibusbmuxdCheck(devices: Set(onCable.map(\.udid.text))).run()]
    }

    /// The phones whose apps cannot be reached.
    var deviceChecks: [Check] {
        devices.compactMap(\.problem).map { .warn($0.subject, $0.text, try: $0.hint) }
            + devices.compactMap(\.pairingNote).map { .ok($0.subject, "\($0.text); \($0.hint ?? "")") }
    }

    /// The check of OAuth, if it is on.
    var oauthChecks: [Check] {
        OAuthCheck.run(settings: settings, remote: status?.remote).map { [$0] } ?? []
    }

    private var descriptors: [Check] {
        guard let process = status?.pid, let connections = settings["tunnels.max_connections"]?.int,
            let streams = settings["devices.max_streams"]?.int
        else { return [] }
        return DescriptorCheck(broker: process, connections: connections, streams: streams).run()
    }
}
