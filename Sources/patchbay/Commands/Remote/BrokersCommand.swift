import ArgumentParser
import Client
import FoundationEssentials
import Model

struct BrokersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "brokers",
        abstract: "List the joined brokers on other machines.",
        discussion: """
            Asks each broker whether it is reachable and the grant is still valid. `patchbay join -` adds a broker, and \
            `patchbay leave NAME` removes it. KEY is the beginning of the pin in `patchbay remote status`.

            STATE is reachable, grant-ended (expired or revoked), other-key (another key than when you joined), \
            key-missing (the key file on this machine), throttled (too many requests; the rest says how long), or \
            unreachable.

            `--nearby` asks a broker of yours for the brokers that advertise themselves on its network. It needs \
            avahi-daemon there. An advertisement proves nothing.

              patchbay brokers
              patchbay brokers --nearby
              patchbay brokers --json | jq -r '.brokers[].name'
            """
    )

    @Flag(help: "List the brokers on the network instead.")
    var nearby = false
    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    /// The time for an answer of a broker.
    private static let timeout = Duration.seconds(3)

    func run() async throws {
        let store = try JoinedBrokerStore(environment: ProcessInfo.processInfo.environment)
        let brokers = try store.all
        if nearby { return try await showNearby(joined: brokers) }
        let answers = await Self.answers(of: brokers, store)
        let rows = brokers.map { BrokerRow($0, answers[$0.name] ?? BrokerAnswer(.unreachable)) }
        try format.show(
            BrokerList(brokers: rows),
            ids: rows.map(\.name),
            table: BrokerRow.table(of: rows, now: Date()),
            ifEmpty: "No joined brokers on other machines. Join one with `patchbay join -` and the string of "
                + "`patchbay pair --remote`." + Self.localGrant(),
            on: options.output
        )
    }

    /// Returns how to use the grants for this machine, which are no brokers on other machines; empty without one.
    private static func localGrant() -> String {
        let store = try? CredentialStore(environment: ProcessInfo.processInfo.environment)
        guard let broker = (try? store?.brokers())?.first else { return "" }
        return " Your grant for this machine needs no name: `patchbay list --broker \(SanitizedText(broker))`."
    }

    private func showNearby(joined: [JoinedBroker]) async throws {
        let client = try options.client
        let rows: [NearbyBrokerRow]
        do { rows = try await client.nearbyBrokers().map { NearbyBrokerRow($0, joined: joined) } } catch {
            guard let error = error as? ClientError, case .brokerNotRunning = error else { throw error }
            throw Self.noLocalBroker(error)
        }
        if rows.isEmpty, let failure = Self.browsingFailure(try await client.status().sources) { throw failure }
        try format.show(
            NearbyBrokerRows(brokers: rows),
            ids: rows.map(\.broker.name.text),
            table: NearbyBrokerRow.table(of: rows),
            ifEmpty: "No broker advertises itself on the network. A broker does so with `patchbay remote on`.",
            on: options.output
        )
    }

    /// The error without a broker on this machine, because this command does not browse the network itself.
    static func noLocalBroker(_ error: ClientError) -> CLIError {
        CLIError(
            status: ExitStatus(for: error),
            message: "--nearby asks the broker of this machine, and \(error)",
            hint: error.hint
        )
    }

    /// The error for an empty list of a broker that does not browse the network; nil if it does.
    static func browsingFailure(_ sources: [SourceStatus]) -> CLIError? {
        guard let bonjour = sources.first(where: { $0.name == "bonjour" }),
            bonjour.state == .missing || bonjour.state == .off
        else { return nil }
        return CLIError.temporary(
            "the broker cannot browse the network: \(Console.plain(bonjour.detail))",
            try: bonjour.hint ?? "set discovery.enabled = true in its configuration"
        )
    }

    /// Asks all brokers at once.
    private static func answers(
        of brokers: [JoinedBroker],
        _ store: JoinedBrokerStore
    ) async -> [String: BrokerAnswer] {
        await withTaskGroup(of: (String, BrokerAnswer).self) { group in
            for broker in brokers { group.addTask { (broker.name, await answer(of: broker, store)) } }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    private static func answer(of broker: JoinedBroker, _ store: JoinedBrokerStore) async -> BrokerAnswer {
        do {
            _ = try await store.client(of: broker, timeout: timeout).ownGrant()
            return BrokerAnswer(.reachable)
        } catch {
            return BrokerAnswer(error)
        }
    }
}

/// The state of a joined broker.
enum BrokerState: String, Encodable {
    case reachable
    /// The broker answers, and the grant has expired or was revoked.
    case grantEnded = "grant-ended"
    /// The broker has another key than when it was joined.
    case otherKey = "other-key"
    /// The key file of this client is missing or unusable.
    case keyMissing = "key-missing"
    /// The broker answers with 429, for example after many requests with a grant that has ended.
    case throttled
    case unreachable
}

/// The answer of a joined broker.
struct BrokerAnswer {
    let state: BrokerState
    /// The reason of a throttled broker and the time until the next attempt.
    let detail: String?

    init(_ state: BrokerState, detail: String? = nil) {
        self.state = state
        self.detail = detail
    }

    /// The answer that an error of a request stands for.
    init(_ error: any Error) {
        switch error {
        case ClientError.refused(let problem) where problem.code == .unauthorized: self.init(.grantEnded)
        case ClientError.refused(let problem) where problem.status == 429:
            self.init(.throttled, detail: Console.plain(problem.detail))
        case ClientError.otherKey: self.init(.otherKey)
        case is CLIError: self.init(.keyMissing)
        default: self.init(.unreachable)
        }
    }
}

/// The output of `patchbay brokers --json`.
struct BrokerList: Encodable {
    let schema = 1
    let brokers: [BrokerRow]
}

/// A joined broker in the output of `patchbay brokers`.
struct BrokerRow: Encodable {
    let name: String
    let address: String
    let pin: KeyPin
    /// The ID of the grant, and its end.
    let grant: String
    let expiresAt: Date
    let state: BrokerState
    /// The reason for the state `throttled`, with the seconds to wait.
    let detail: String?

    init(_ broker: JoinedBroker, _ answer: BrokerAnswer) {
        name = broker.name
        address = broker.address.description
        pin = broker.pin
        grant = broker.grant.id
        expiresAt = broker.grant.expiresAt
        state = answer.state
        detail = answer.detail
    }

    /// The number of letters of a pin in the table.
    private static let pinPrefix = 8

    static func table(of rows: [BrokerRow], now: Date) -> Table {
        Table(
            of: rows,
            [
                .init("NAME", style: { _ in .bold }, \.name), .init("ADDRESS", .flexible, \.address),
                .init("KEY", .optional, style: { _ in .dim }) { "\($0.pin)".prefix(pinPrefix) + "…" },
                .init("GRANT", .optional, \.grant),
                .init("EXPIRES", .optional) { Formatting.from(now, to: $0.expiresAt) },
                .init("STATE", style: { $0.state == .reachable ? .green : .yellow }) { row in
                    row.state.rawValue + (row.detail.map { ": \($0)" } ?? "")
                },
            ]
        )
    }
}
