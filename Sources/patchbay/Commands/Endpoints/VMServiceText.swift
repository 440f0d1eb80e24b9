import Client
import Model

/// The URLs of Dart VM services in the output of commands. They contain the endpoint's secret.
enum VMServiceText {
    /// The output of `patchbay show --json`: an endpoint, with its VM service or pages if the caller may read them.
    struct Document: Encodable {
        private enum Keys: String, CodingKey { case vmService, webPages }

        let endpoint: Endpoint
        let vmService: DartVMService?
        let webPages: WebPages?

        func encode(to encoder: any Encoder) throws {
            try endpoint.encode(to: encoder)
            var container = encoder.container(keyedBy: Keys.self)
            try container.encodeIfPresent(vmService, forKey: .vmService)
            try container.encodeIfPresent(webPages, forKey: .webPages)
        }
    }

    /// Asks the broker for the URLs of an endpoint.
    ///
    /// - Returns: Nil for other kinds of endpoints, and for a blocked one. A failure is the broker's reason for showing no
    ///   URLs.
    static func urls(
        of endpoint: Endpoint,
        _ client: PatchbayClient
    ) async throws -> Result<DartVMService, Problem>? {
        guard endpoint.kind == .dartVM, endpoint.state != .blocked else { return nil }
        do { return .success(try await client.vmService(of: endpoint.id)) } catch ClientError.refused(let problem) {
            return .failure(problem)
        }
    }

    /// The facts for `patchbay show`.
    static func facts(_ urls: Result<DartVMService, Problem>?) -> [(String, String?)] {
        switch urls {
        case nil: []
        case .success(let service) where service.authCode == nil:
            [
                ("vm service", service.http), ("", service.webSocket),
                ("", "without an authentication code: none is stored for this launch"),
            ]
        case .success(let service): [("vm service", service.http), ("", service.webSocket)]
        case .failure(let problem): [("vm service", "not shown: \(problem.detail)")]
        }
    }

    /// The line after the table of `patchbay list`; nil without a Dart VM service.
    static func hint(for endpoints: [Endpoint]) -> String? {
        guard let first = endpoints.first(where: { $0.kind == .dartVM && $0.approval == .approved }) else { return nil }
        return "The URL of a Dart VM service: patchbay show \(first.id)"
    }

    /// The line of `patchbay forward` for a tunnel to a Dart VM service or a DevTools server; nil for other tunnels.
    static func line(for tunnel: Tunnel, _ client: PatchbayClient) async throws -> String? {
        guard case .endpoint(let id) = tunnel.spec.target, let authority = tunnel.authority,
            let endpoint = try? await client.endpoint(id)
        else { return nil }
        if endpoint.kind == .web { return "DevTools: http://\(authority)" }
        switch try await urls(of: endpoint, client) {
        case nil: return nil
        case .success(let service):
            return "VM service: \(DartVMService(at: authority, authCode: service.authCode).http)"
        case .failure(let problem): return "VM service: not shown: \(problem.detail)"
        }
    }
}
