import ArgumentParser
import Client
import Model

/// What somebody is let do, and with which endpoints.
struct PermissionOptions: ParsableArguments {
    @Option(
        name: .customLong("scope"),
        help: ArgumentHelp(
            "What it allows; as often as you like.",
            discussion: "Default: registry.read, endpoint.call, tunnel.open and secret.use.",
            valueName: "scope"
        )
    )
    var scopes: [Scope] = []
    @Option(
        name: [.short, .customLong("endpoint")],
        help: ArgumentHelp("Only this endpoint; as often as you like.", valueName: "id")
    )
    var endpoints: [String] = []
    @Option(
        name: .customLong("app"),
        help: ArgumentHelp("Only this app, on whichever phone, by bundle identifier.", valueName: "app")
    )
    var apps: [String] = []

    /// What an agent needs for its work.
    static let usual: Set<Scope> = [.registryRead, .endpointCall, .tunnelOpen, .secretUse]

    func validate() throws {
        if !endpoints.isEmpty, !apps.isEmpty {
            throw ValidationError("Permissions are about endpoints or about apps; give --endpoint or --app, not both.")
        }
        if apps.contains(where: { $0.allSatisfy(\.isWhitespace) }) {
            throw ValidationError("--app is a bundle identifier, such as com.example.shop; it cannot be empty.")
        }
    }

    /// The endpoints are looked up, so that a mistyped one is not let pass.
    func permissions(_ client: PatchbayClient, command: String) async throws -> Permissions {
        let scopes = scopes.isEmpty ? Self.usual : Set(scopes)
        if !apps.isEmpty { return Permissions(scopes, on: .bundles(Set(apps))) }
        if endpoints.isEmpty { return Permissions(scopes, on: .all) }
        let list = try await client.endpoints().endpoints
        let ids = try endpoints.map {
            try EndpointSelector(text: $0, command: "\(command) --endpoint").choose(among: list).id
        }
        return Permissions(scopes, on: .endpoints(Set(ids)))
    }
}

extension Scope: ExpressibleByArgument {}

/// A span of time as people write it: `90`, `90s`, `10m`, `8h`, `30d`.
struct DurationArgument: ExpressibleByArgument, Equatable {
    let count: Int

    private static let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

    init?(argument: String) {
        guard let last = argument.last else { return nil }
        let unit = Self.units[last]
        let digits = unit == nil ? argument[...] : argument.dropLast()
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(digits), number > 0 else {
            return nil
        }
        let (count, overflows) = number.multipliedReportingOverflow(by: unit ?? 1)
        guard !overflows else { return nil }
        self.count = count
    }
}
