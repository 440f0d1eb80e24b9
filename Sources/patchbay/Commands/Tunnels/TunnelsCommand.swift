import ArgumentParser
import Client
import FoundationEssentials
import Model

struct TunnelsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tunnels",
        abstract: "List, show and remove tunnels.",
        discussion: """
              patchbay tunnels
              patchbay tunnels show t3
              patchbay tunnels rm t3
              patchbay tunnels rm --all
            """,
        subcommands: [TunnelListCommand.self, TunnelShowCommand.self, TunnelRemoveCommand.self],
        defaultSubcommand: TunnelListCommand.self
    )
}

struct TunnelListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the tunnels with their addresses, targets, states and statistics.",
        discussion: """
            A tunnel is `active`, `waiting` (its target is absent, or nothing listens there), or `failed` (it cannot \
            listen). After a refused connection it waits until one works.

              patchbay tunnels --json | jq '.tunnels[].statistics.bytesDown'
            """,
        aliases: ["ls"]
    )

    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let tunnels = try await options.client.tunnels.list()
        try format.show(
            tunnels,
            id: \.id,
            table: TunnelTableView.table(of: tunnels),
            ifEmpty: "No tunnels. Open one to the attached phone with `patchbay forward 9876`.",
            on: options
        )
    }
}

struct TunnelShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show all details of one tunnel.",
        discussion: "  patchbay tunnels show t3"
    )

    @Argument(help: ArgumentHelp("Show this tunnel.", valueName: "id"), completion: .objects(.tunnels))
    var id: String
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let tunnels = try await options.client.tunnels.list()
        guard let tunnel = tunnels.first(where: { $0.id == id }) else {
            let near = CommandSuggestion.respelled(id, for: "patchbay tunnels show", among: tunnels.map(\.id))
            throw CLIError.notFound("no tunnel has the ID \"\(SanitizedText(id))\"", try: near ?? "patchbay tunnels")
        }
        let output = options.output
        if format.json { return try output.document(tunnel) }
        try output.line(TunnelTableView.details(of: tunnel, isColoured: output.isColoured))
    }
}

struct TunnelRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Remove tunnels and close their connections.",
        discussion: """
            If an ID is unknown, the other tunnels are still removed.

              patchbay tunnels rm t3 t4
              patchbay tunnels rm --all
            """
    )

    @Argument(help: ArgumentHelp("Remove these tunnels.", valueName: "id"), completion: .objects(.tunnels))
    var ids: [String] = []
    @Flag(help: "Remove all tunnels.")
    var all = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if all == !ids.isEmpty { throw ValidationError("Specify the IDs of the tunnels to remove, or --all.") }
        if ids.contains("") { throw ValidationError("An ID is empty; nothing was removed.") }
    }

    func run() async throws {
        let client = try options.client
        if all {
            let count = try await client.tunnels.removeAll()
            return try options.output.line(
                count == 0 ? "There were no tunnels." : "Removed \(Formatting.count(count, "tunnel"))."
            )
        }
        try await BatchOperation.run(ids) { id in
            try await client.tunnels.remove(id)
            try options.output.line("Removed \(id).")
        } suggestion: { id in
            let known = try await client.tunnels.list().map(\.id)
            if id == "all" { return "patchbay tunnels rm --all" }
            if known.contains("t\(id)") { return "patchbay tunnels rm t\(id)" }
            return CommandSuggestion.respelled(id, for: "patchbay tunnels rm", among: known)
        }
    }
}

/// The table of `patchbay tunnels`, the details of one tunnel, and the line that `patchbay forward` prints.
enum TunnelTableView {
    static func table(of tunnels: [Tunnel]) -> Table {
        Table(
            of: tunnels,
            [
                .init("ID", \.id), .init("LOCAL", local),
                .init("TARGET", .flexible) { Formatting.target($0.spec.target) },
                .init("STATE", style: \.state.style, \.state.name),
                .init("OPEN", .optional) { "\($0.statistics.open)" },
                .init("TOTAL", .optional) { "\($0.statistics.connections)" },
                .init("FAILED", .optional, style: { failureCount(of: $0) > 0 ? .yellow : .plain }) {
                    "\(failureCount(of: $0))"
                },
                .init("UP", .optional) { amount($0.statistics.bytesUp, $0.statistics.bytesPerSecondUp) },
                .init("DOWN", .optional) { amount($0.statistics.bytesDown, $0.statistics.bytesPerSecondDown) },
                .init("REASON", .flexible) { remarks(on: $0).joined(separator: "; ") },
            ]
        )
    }

    private static func failureCount(of tunnel: Tunnel) -> UInt64 { tunnel.statistics.failures.values.reduce(0, +) }

    /// All facts of one tunnel, one per line.
    static func details(of tunnel: Tunnel, now: Date = Date(), isColoured: Bool) -> String {
        let counted = tunnel.statistics
        let listening = tunnel.listenAddresses.map(Formatting.address).joined(separator: ", ")
        let facts: [(String, String?)] = [
            ("local", "\(tunnel.spec.local)"), ("listening", listening.isEmpty ? "no" : listening),
            ("target", Formatting.target(tunnel.spec.target)), ("owner", "user \(tunnel.owner)"),
            ("clients", openness(of: tunnel.spec) ?? "the owner only, no browsers"),
            ("connections", "\(counted.open) open, \(counted.connections) in total"),
            ("failures", failures(of: tunnel)), ("up", amount(counted.bytesUp, counted.bytesPerSecondUp)),
            ("down", amount(counted.bytesDown, counted.bytesPerSecondDown)),
            ("created", Formatting.ago(tunnel.createdAt, now: now)),
        ]
        let title =
            ANSIStyle.bold.paint(tunnel.id, isOn: isColoured) + "  "
            + tunnel.state.style.paint(tunnel.state.name, isOn: isColoured)
        let lines = facts.compactMap { name, value in value.map { "  \(name.padded(to: 11))  \($0)" } }
        return ([title + (tunnel.state.reason.map { ": \($0)" } ?? "")] + lines).joined(separator: "\n")
    }

    /// Formats a byte count, with the rate while bytes flow: `1.5 MB, 200.0 kB/s`.
    private static func amount(_ bytes: UInt64, _ rate: UInt64?) -> String {
        guard let rate, rate > 0 else { return Formatting.bytes(bytes) }
        return "\(Formatting.bytes(bytes)), \(Formatting.bytes(rate))/s"
    }

    /// The line that `patchbay forward` prints: `127.0.0.1:43211 -> 00008101-…:9876 (t3)`.
    static func line(_ tunnel: Tunnel) -> String {
        let name = tunnel.replaced.map { "\(tunnel.id), replaces \($0)" } ?? tunnel.id
        let line = "\(local(of: tunnel)) -> \(Formatting.target(tunnel.spec.target)) (\(name))"
        let openness = openness(of: tunnel.spec).map { "\(line) \($0)" } ?? line
        return tunnel.state.reason.map { "\(openness) \(tunnel.state.name): \($0)" } ?? openness
    }

    /// The address and the state of a tunnel: `127.0.0.1:43211 (t3) waiting: …`.
    static func summary(of tunnel: Tunnel) -> String {
        "\(local(of: tunnel)) (\(tunnel.id)) \(tunnel.state.name)" + (tunnel.state.reason.map { ": \($0)" } ?? "")
    }

    private static func remarks(on tunnel: Tunnel) -> [String] {
        [tunnel.state.reason, failures(of: tunnel).map { "failed: \($0)" }, openness(of: tunnel.spec)].compactMap { $0 }
    }

    /// Lists the failures by kind, the most frequent first; nil without failures.
    private static func failures(of tunnel: Tunnel) -> String? {
        let kinds = tunnel.statistics.failures.filter { $0.value > 0 }.sorted {
            ($1.value, $0.key) < ($0.value, $1.key)
        }
        return kinds.isEmpty
            ? nil : kinds.map { "\($1) \(Formatting.failure($0))" }.joined(separator: ", ")
    }

    /// Lists the lifted protections; nil if all protections are active.
    private static func openness(of spec: TunnelSpec) -> String? {
        let clients = [spec.allowAnyUser ? "any user" : nil, spec.allowBrowsers ? "browsers" : nil].compactMap { $0 }
        return clients.isEmpty ? nil : "open to \(clients.joined(separator: " and "))"
    }

    /// Returns the address to connect to: the first one, because both loopback addresses have the same port.
    private static func local(of tunnel: Tunnel) -> String {
        Formatting.address(tunnel.listenAddresses.first ?? tunnel.spec.local)
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

/// Applies an operation to several IDs and continues after a rejection.
enum BatchOperation {
    /// Runs the operation for each ID in order. `suggestion` returns the command for an ID that was probably meant
    /// instead of an unknown one; the default has none.
    ///
    /// - Throws: The rejection of the broker, or a `CLIError` that lists several rejections. All other errors end the batch
    ///   immediately.
    static func run(
        _ ids: [String],
        _ step: (String) async throws -> Void,
        suggestion: (String) async throws -> String? = { _ in nil }
    ) async throws {
        var refusals: [ClientError] = []
        for id in ids {
            do {
                try await step(id)
            } catch ClientError.refused(var problem) {
                if problem.code == .notFound, let hint = try? await suggestion(id) { problem.hint = hint }
                refusals.append(.refused(problem))
            }
        }
        guard refusals.count > 1 else {
            if let only = refusals.first { throw only }
            return
        }
        let numbers = Set(refusals.map { ExitStatus(for: $0) })
        throw CLIError(
            status: numbers.count == 1 ? ExitStatus(for: refusals[0]) : .error,
            message: "\(refusals.count) of \(ids.count) operations failed",
            candidates: refusals.map(\.description),
            hint: refusals[0].hint
        )
    }
}
