import ArgumentParser
import Client
import Model

/// The options that select the scopes, endpoints and tools of an invite.
struct PermissionOptions: ParsableArguments {
    @Option(
        name: .customLong("scope"),
        help: ArgumentHelp(
            "Grant this scope instead of the default ones; repeatable.",
            discussion: "Default: registry.read, endpoint.call, tunnel.open and secret.use, without tunnel.open if "
                + "the tools are limited. Others: shell (tunnels to OpenAgents), secret.read (URLs of Dart VM services), "
                + "endpoint.register (apps that register themselves), invite.create and admin.",
            valueName: "scope"
        )
    )
    var scopes: [Scope] = []
    @Option(
        name: [.short, .customLong("endpoint")],
        help: ArgumentHelp("Limit the grant to this endpoint; repeatable.", valueName: "id"),
        completion: .objects(.endpoints)
    )
    var endpoints: [String] = []
    @Option(
        name: .customLong("app"),
        help: ArgumentHelp("Limit the grant to this app on any phone, by bundle ID; repeatable.", valueName: "app")
    )
    var apps: [String] = []
    @Option(
        name: .customLong("team-host"),
        help: ArgumentHelp("Limit the grant to the endpoints of this host of the team; repeatable.", valueName: "host")
    )
    var hosts: [HostName] = []
    @Flag(name: .customLong("read-only"), help: "Limit the grant to tools that change nothing.")
    var isReadOnly = false
    @Option(
        name: .customLong("tool"),
        help: ArgumentHelp(
            "Limit the grant to this tool of each app; repeatable.",
            discussion: "The name is not checked, because an app may have the tool later.",
            valueName: "tool"
        )
    )
    var tools: [String] = []

    /// The default scopes: those that an agent needs. With limited tools, without those that would bypass the limit.
    static func usual(with tools: ToolFilter) -> Set<Scope> {
        let scopes: Set<Scope> = [.registryRead, .endpointCall, .tunnelOpen, .secretUse]
        return tools == .all ? scopes : scopes.filter { !$0.bypassesTools }
    }

    /// True if an option selects scopes, endpoints or tools.
    var isLimited: Bool { !scopes.isEmpty || hasEndpointLimit || isReadOnly || !tools.isEmpty }

    private var hasEndpointLimit: Bool { !endpoints.isEmpty || !apps.isEmpty || !hosts.isEmpty }

    private var toolFilter: ToolFilter { isReadOnly ? .readOnly : tools.isEmpty ? .all : .named(Set(tools)) }

    func validate() throws {
        if [endpoints.isEmpty, apps.isEmpty, hosts.isEmpty].count(where: { !$0 }) > 1 {
            throw ValidationError("--endpoint, --app and --team-host exclude each other.")
        }
        if apps.contains(where: { $0.allSatisfy(\.isWhitespace) }) {
            throw ValidationError("--app must be a bundle identifier, such as com.example.shop.")
        }
        if isReadOnly, !tools.isEmpty { throw ValidationError("--read-only and --tool exclude each other.") }
        let chosen = Permissions(Set(scopes), on: .all, tools: toolFilter)
        if let exclusion = scopes.lazy.compactMap(chosen.exclusion).first {
            throw ValidationError("\(exclusion). Leave out --scope or the limit.")
        }
    }

    /// Converts the options for a client that may not read the broker's list. Endpoints are named by their full IDs.
    ///
    /// - Throws: `CLIError` for a text that is no ID.
    func permissionsWithoutList() throws(CLIError) -> Permissions {
        let tools = toolFilter
        let scopes = scopes.isEmpty ? Self.usual(with: tools) : Set(scopes)
        if !apps.isEmpty { return Permissions(scopes, on: .bundles(Set(apps)), tools: tools) }
        if !hosts.isEmpty { return Permissions(scopes, on: .hosts(Set(hosts)), tools: tools) }
        var ids: Set<EndpointID> = []
        for text in endpoints {
            guard let id = EndpointID(text) else {
                throw .usage(
                    "\"\(SanitizedText(text))\" is not an endpoint ID",
                    try: "give the full ID, which an owner sees in patchbay list"
                )
            }
            ids.insert(id)
        }
        return Permissions(scopes, on: ids.isEmpty ? .all : .endpoints(ids), tools: tools)
    }

    /// Resolves the options. Looks up endpoints in the broker's list, so that a mistyped ID is an error.
    func permissions(_ client: PatchbayClient, command: String) async throws -> Permissions {
        let tools = toolFilter
        let scopes = scopes.isEmpty ? Self.usual(with: tools) : Set(scopes)
        if !apps.isEmpty { return Permissions(scopes, on: .bundles(try await bundles(client)), tools: tools) }
        if !hosts.isEmpty { return Permissions(scopes, on: .hosts(Set(hosts)), tools: tools) }
        if endpoints.isEmpty { return Permissions(scopes, on: .all, tools: tools) }
        var ids: Set<EndpointID> = []
        for text in endpoints {
            ids.insert(try await EndpointSelector(text: text, command: "\(command) --endpoint").choose(client).id)
        }
        return Permissions(scopes, on: .endpoints(ids), tools: tools)
    }
}

extension PermissionOptions {
    /// Resolves the options as limits of a request. What no option names stays as the request asks for it.
    func limits(_ client: PatchbayClient, command: String) async throws -> AccessRequestLimits {
        let chosen = try await permissions(client, command: command)
        return AccessRequestLimits(
            scopes: scopes.isEmpty ? nil : scopes,
            selector: chosen.selector == .all ? nil : chosen.selector,
            tools: chosen.tools == .all ? nil : chosen.tools
        )
    }

    /// Resolves the apps, and says on standard error what an uncertain one means.
    private func bundles(_ client: PatchbayClient) async throws -> Set<String> {
        let listed = (try? await client.endpoints().endpoints) ?? []
        let chosen = try apps.map { text throws(CLIError) in try AppSelector(text: text).choose(among: listed) }
        for note in chosen.compactMap(\.note) { try? Console.errors().line(note) }
        return Set(chosen.map(\.app))
    }
}

extension Scope: ExpressibleByArgument {}

extension DurationText {
    /// Parses a duration of the command line.
    ///
    /// - Parameters:
    ///   - argument: The text of the command line.
    ///   - minimum: The minimum in seconds.
    ///   - maximum: The maximum in seconds.
    ///   - name: The maximum as text.
    /// - Returns: The duration.
    /// - Throws: `ValidationError`, with the format and the range.
    static func parse(
        _ argument: String,
        from minimum: Int = 1,
        upTo maximum: Int,
        as name: String
    ) throws -> Self {
        guard let duration = Self(argument), (minimum...maximum).contains(duration.seconds) else {
            throw ValidationError("Enter a time such as 90s or 10m, from \(minimum)s to \(name).")
        }
        return duration
    }
}
