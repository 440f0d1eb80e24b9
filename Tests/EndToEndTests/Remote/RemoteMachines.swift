import FoundationEssentials
import TestSupport

/// Two machines on one network: one with a broker and an app, and one with only `patchbay`.
///
/// Each machine is a namespace with its own home folder. The network has no multicast, and no machine has Avahi.
final class RemoteMachines {
    static let brokerHost = "10.99.0.1"
    static let clientHost = "10.99.0.2"
    static let port = 7_283

    let scratch: ScratchFolder
    let broker: NetworkNamespace
    let client: NetworkNamespace
    private let daemon: Program

    /// Starts the broker. The remote listener is on if `isRemoteOn`.
    init(in scratch: ScratchFolder, isRemoteOn: Bool = true) async throws {
        self.scratch = scratch
        broker = try await NetworkNamespace(in: scratch)
        client = try await NetworkNamespace(in: scratch)
        try await broker.run(
            "ip",
            ["link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", "\(client.processID)"]
        )
        for (machine, host) in [(broker, Self.brokerHost), (client, Self.clientHost)] {
            let script =
                "ip addr add \(host)/24 dev eth0; ip link set eth0 multicast off up; ip route add blackhole 224.0.0.0/4"
            try await machine.run("sh", ["-ec", script])
        }
        for folder in ["broker", "client"] { try scratch.makeFolder(folder) }
        daemon = try await Program(
            Executable.built("patchbayd"),
            ["--state-directory", scratch.file("broker/state")],
            in: scratch,
            environment: Self.brokerEnvironment(scratch),
            namespace: broker
        )
        try await daemon.waitForLine("the API is open")
        if isRemoteOn { _ = try await owner("remote", "on") }
    }

    private static func brokerEnvironment(_ scratch: ScratchFolder) -> [String: String] {
        [
            "PATCHBAY_SOCKET": scratch.file("broker/patchbay.sock"), "HOME": scratch.file("broker"),
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(scratch.path)/no-bus",
            "USBMUXD_SOCKET_ADDRESS": "\(scratch.path)/no-usbmuxd", "XDG_STATE_HOME": "",
        ]
    }

    private func environment(of machine: NetworkNamespace) -> [String: String] {
        if machine === broker { return Self.brokerEnvironment(scratch) }
        let home = scratch.file("client")
        return ["PATCHBAY_SOCKET": "\(home)/none.sock", "HOME": home, "XDG_STATE_HOME": ""]
    }

    /// Runs `patchbay` on a machine until it succeeds.
    ///
    /// - Returns: The lines of its standard output.
    private func run(_ arguments: [String], on machine: NetworkNamespace) async throws -> [String] {
        try await Program.run(
            Executable.built("patchbay"),
            arguments,
            in: scratch,
            environment: environment(of: machine),
            namespace: machine
        )
    }

    /// Starts `patchbay` on a machine.
    private func start(
        _ arguments: [String],
        on machine: NetworkNamespace,
        _ environment: [String: String],
        _ input: Program.Input
    ) async throws -> Program {
        try await Program(
            Executable.built("patchbay"),
            arguments,
            in: scratch,
            environment: self.environment(of: machine).merging(environment) { $1 },
            input: input,
            namespace: machine
        )
    }

    /// Runs `patchbay` as the owner on the broker's machine until it succeeds, and returns its output.
    @discardableResult
    func owner(_ arguments: String...) async throws -> [String] { try await run(arguments, on: broker) }

    /// Runs `patchbay` on the other machine until it succeeds, and returns its output.
    @discardableResult
    func ask(_ arguments: String...) async throws -> [String] { try await run(arguments, on: client) }

    /// Starts `patchbay` as the owner on the broker's machine.
    func startAsOwner(
        _ arguments: String...,
        environment: [String: String] = [:],
        input: Program.Input = .nothing
    ) async throws -> Program { try await start(arguments, on: broker, environment, input) }

    /// Starts `patchbay` on the other machine.
    func start(
        _ arguments: String...,
        environment: [String: String] = [:],
        input: Program.Input = .nothing
    ) async throws -> Program { try await start(arguments, on: client, environment, input) }

    /// Creates an invite and returns its pairing string.
    func pair(_ arguments: String...) async throws -> String {
        let lines = try await run(["pair", "--detach"] + arguments, on: broker)
        guard let string = lines.first(where: { $0.hasPrefix("PATCHBAY:1:") }) else {
            throw TestSupportError("pair printed no pairing string: \(lines)")
        }
        return string
    }

    /// Pastes a pairing string into `patchbay join` on the other machine.
    func join(_ string: String, _ arguments: String..., environment: [String: String] = [:]) async throws -> Program {
        let join = try await start(["join", "-"] + arguments, on: client, environment, .pipe)
        try join.write(string + "\n")
        return join
    }

    /// Starts the sample app on the broker's machine, and adds it as the endpoint `shop`.
    func addShop() async throws {
        let app = try await Program(
            "python3",
            ["\(TestSupportFolder.sources)/sampleapp.py", "--bundle", "com.example.shop", "--mode", "ios-0.9"],
            in: scratch,
            namespace: broker
        )
        let port = try await app.waitForLine("listening on ").dropFirst("listening on ".count)
        try await owner("add", "Shop", "127.0.0.1:\(port)", "--kind", "appreveal")
    }
}
