import ArgumentParser
import Client
import Model

struct TunnelsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tunnels",
        abstract: "List the tunnels with what went through them; remove them.",
        discussion: """
              patchbay tunnels
              patchbay tunnels rm t3
              patchbay tunnels rm --all
            """,
        subcommands: [TunnelListCommand.self, TunnelRemoveCommand.self],
        defaultSubcommand: TunnelListCommand.self
    )
}

struct TunnelListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the tunnels: where they listen, where they lead, whether that is there, and what they counted.",
        discussion: """
            A tunnel is `active`, `waiting` (what it leads to is not there now), or `failed` (it cannot listen).

              patchbay tunnels --json | jq '.tunnels[].statistics.bytesDown'
            """,
        aliases: ["ls"]
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let list = try await options.client.tunnels()
        let output = options.output
        if format.json { return try output.document(list) }
        if list.tunnels.isEmpty {
            return try output.line("No tunnel is open. `patchbay forward 9876` opens one to the phone on the cable.")
        }
        try output.table(TunnelTableView.table(of: list.tunnels))
    }
}

struct TunnelRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove tunnels by id, or all of them; their connections end.",
        discussion: """
            Where one id is wrong the others are removed all the same.

              patchbay tunnels rm t3 t4
              patchbay tunnels rm --all
            """
    )

    @Argument(help: ArgumentHelp("The tunnels, as `patchbay tunnels` lists them.", valueName: "id"))
    var ids: [String] = []
    @Flag(help: "Remove every tunnel.")
    var all = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if all == !ids.isEmpty { throw ValidationError("Give the ids of the tunnels to remove, or --all.") }
        if ids.contains("") { throw ValidationError("One of the ids is empty: nothing was removed.") }
    }

    func run() async throws {
        let client = try options.client
        if all {
            let count = try await client.removeAllTunnels()
            return try options.output.line(
                count == 0 ? "There was no tunnel." : "Removed \(Formatting.count(count, "tunnel"))."
            )
        }
        try await BatchOperation.run(ids) { id in
            try await client.removeTunnel(id)
            try options.output.line("Removed \(id).")
        }
    }
}

/// The tunnels as `patchbay tunnels` shows them, and the line that `patchbay forward` prints for each.
enum TunnelTableView {
    static func table(of tunnels: [Tunnel]) -> Table {
        var table = Table(columns: [
            .init(title: "ID"), .init(title: "LOCAL"), .init(title: "TARGET", isFlexible: true), .init(title: "STATE"),
            .init(title: "OPEN"), .init(title: "TOTAL"), .init(title: "FAILED"), .init(title: "UP"),
            .init(title: "DOWN"), .init(title: "WHY", isFlexible: true),
        ])
        table.rows = tunnels.map { tunnel in
            let counted = tunnel.statistics
            let failures = counted.failures.values.reduce(0, +)
            return [
                .init(tunnel.id), .init(local(of: tunnel)), .init(Formatting.target(tunnel.spec.target)),
                .init(tunnel.state.name, tunnel.state.style), .init("\(counted.open)"), .init("\(counted.connections)"),
                .init("\(failures)", failures > 0 ? .yellow : .plain),
                .init(amount(counted.bytesUp, counted.rateUp)), .init(amount(counted.bytesDown, counted.rateDown)),
                .init(remarks(on: tunnel).joined(separator: "; ")),
            ]
        }
        return table
    }

    /// `1.5 MB`, and while bytes flow `1.5 MB, 200.0 kB/s`.
    private static func amount(_ bytes: UInt64, _ rate: UInt64?) -> String {
        guard let rate, rate > 0 else { return Formatting.bytes(bytes) }
        return "\(Formatting.bytes(bytes)), \(Formatting.bytes(rate))/s"
    }

    /// `127.0.0.1:43211 -> 00008101-…:9876 (t3)`.
    static func line(_ tunnel: Tunnel) -> String {
        let name = tunnel.replaced.map { "\(tunnel.id), in place of \($0)" } ?? tunnel.id
        let line = "\(local(of: tunnel)) -> \(Formatting.target(tunnel.spec.target)) (\(name))"
        let openness = openness(of: tunnel.spec).map { "\(line) \($0)" } ?? line
        return tunnel.state.reason.map { "\(openness) \(tunnel.state.name): \($0)" } ?? openness
    }

    private static func remarks(on tunnel: Tunnel) -> [String] {
        [tunnel.state.reason, failures(of: tunnel), openness(of: tunnel.spec)].compactMap { $0 }
    }

    /// Which kinds of failure were counted, the most frequent first; nil for none.
    private static func failures(of tunnel: Tunnel) -> String? {
        let kinds = tunnel.statistics.failures.filter { $0.value > 0 }.sorted {
            ($1.value, $0.key) < ($0.value, $1.key)
        }
        return kinds.isEmpty
            ? nil : "failed: " + kinds.map { "\($1) \(Formatting.failure($0))" }.joined(separator: ", ")
    }

    /// Which protections were lifted; nil for none.
    private static func openness(of spec: TunnelSpec) -> String? {
        let who = [spec.allowsAnyUser ? "any user" : nil, spec.allowsBrowsers ? "browsers" : nil].compactMap { $0 }
        return who.isEmpty ? nil : "open to \(who.joined(separator: " and "))"
    }

    /// The address to connect to. IPv4 and IPv6 loopback on one port are one thing to a person.
    private static func local(of tunnel: Tunnel) -> String {
        Formatting.address(tunnel.bound.first ?? tunnel.spec.local)
    }
}

extension Tunnel.State {
    var style: ANSIStyle {
        switch self {
        case .active: .green
        case .waiting: .yellow
        case .failed: .red
        }
    }
}

/// The same done to several things: where one of them fails, the others are still done.
enum BatchOperation {
    /// Does it to each in turn.
    ///
    /// - Throws: What the only refusal was; a `CLIError` with all of them where there were several. Anything but a refusal
    ///   of the broker ends the series at once.
    static func run(_ ids: [String], _ step: (String) async throws -> Void) async throws {
        var refusals: [ClientError] = []
        for id in ids {
            do {
                try await step(id)
            } catch let error as ClientError {
                guard case .refused = error else { throw error }
                refusals.append(error)
            }
        }
        guard refusals.count > 1 else {
            if let only = refusals.first { throw only }
            return
        }
        let numbers = Set(refusals.map { ExitStatus(for: $0) })
        throw CLIError(
            status: numbers.count == 1 ? ExitStatus(for: refusals[0]) : .error,
            message: "\(refusals.count) of \(ids.count) could not be done",
            candidates: refusals.map(\.description),
            remedy: refusals[0].remedy
        )
    }
}
