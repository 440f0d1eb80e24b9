import ArgumentParser
import Client
import Model

/// The objects of the broker that a shell offers for an argument.
enum CompletionSource: String, CaseIterable {
    case endpoints
    case devices
    case endpointsAndDevices
    /// Endpoints, and phones as `UDID:`.
    case streamTargets
    case tunnels
    /// The tools of the endpoint that the command line names.
    case tools
    case advertisements
    /// Grants and open invites.
    case grants
    /// Open invites for hosts of the team.
    case teamInvites
    /// The kinds of endpoints that Patchbay knows, and those of the broker's profiles.
    case kinds

    /// The stand-in for the candidates in the answer of the parser, which cannot wait for the broker.
    var placeholder: String { "patchbay-completion:\(rawValue)" }

    /// Reads the candidates from the broker.
    ///
    /// - Throws: `ClientError`.
    func candidates(_ client: PatchbayClient, words: [String]) async throws -> [String] {
        switch self {
        case .endpoints: try await Self.ids(of: client.endpoints().endpoints)
        case .devices: try await client.devices().map(\.udid.text)
        case .endpointsAndDevices:
            try await Self.ids(of: client.endpoints().endpoints) + client.devices().map(\.udid.text)
        case .streamTargets:
            try await Self.ids(of: client.endpoints().endpoints) + client.devices().map { "\($0.udid.text):" }
        case .tunnels: try await client.tunnels.list().map(\.id)
        case .tools: try await Self.tools(client, words: words)
        case .advertisements: try await client.advertisements.list().map(\.id)
        case .grants: try await client.grants().map(\.id) + client.invites().map(\.id)
        case .teamInvites: try await client.team.invites().map(\.id)
        case .kinds: try await EndpointKind.builtIn.map(\.text) + client.profiles().map(\.name)
        }
    }

    private static func ids(of endpoints: [Endpoint]) -> [String] {
        endpoints.flatMap { [$0.id.text] + ($0.combinedWith?.map(\.id.text) ?? []) }
    }

    private static func tools(_ client: PatchbayClient, words: [String]) async throws -> [String] {
        let endpoints = try await client.endpoints().endpoints
        let selected = words.lazy.compactMap { word in
            word.isEmpty ? nil : try? EndpointSelector(text: word, command: "patchbay tools").choose(among: endpoints)
        }
        guard let endpoint = selected.first else { return [] }
        return try await client.tools.list(of: endpoint.id).tools.compactMap { $0["name"]?.string }
    }
}

extension CompletionKind {
    /// Completes with objects of the broker.
    static func objects(_ source: CompletionSource) -> CompletionKind {
        .custom { _, _, _ in [source.placeholder] }
    }
}
