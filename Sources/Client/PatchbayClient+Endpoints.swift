package import Model
import NIOHTTP1

/// Broker status, endpoints and devices.
extension PatchbayClient {
    package func status() async throws -> BrokerStatus {
        try await response(to: OutgoingRequest(method: .GET, path: ["status"]))
    }

    /// Returns the current list, or waits for a newer one.
    ///
    /// - Parameters:
    ///   - state: Return only endpoints in this state.
    ///   - app: Return only endpoints of this app.
    ///   - host: Return only endpoints of this host of the team.
    ///   - revision: Wait until the list is newer than this revision.
    ///   - wait: Maximum time in seconds that the broker waits.
    /// - Returns: The list. Has the requested revision when nothing changed.
    /// - Throws: `ClientError`.
    package func endpoints(
        state: Endpoint.State? = nil,
        app: String? = nil,
        host: HostName? = nil,
        since revision: UInt64? = nil,
        wait: Int? = nil
    ) async throws -> EndpointList {
        let query = [
            ("since", revision.map(String.init)), ("waitSeconds", wait.map(String.init)), ("state", state?.rawValue),
            ("app", app), ("host", host?.text),
        ]
        let request = OutgoingRequest(method: .GET, path: ["endpoints"], query: query)
        return try await response(to: request, extraTimeout: .seconds(wait ?? 0))
    }

    package func endpoint(_ id: EndpointID) async throws -> Endpoint {
        try await response(to: OutgoingRequest(method: .GET, path: ["endpoints", id.text]))
    }

    /// Returns the URLs of a Dart VM service. They contain the endpoint's secret.
    package func vmService(of id: EndpointID) async throws -> DartVMService {
        try await response(to: OutgoingRequest(method: .GET, path: ["endpoints", id.text, "vm-service"]))
    }

    /// Returns the pages of a DevTools server.
    package func webPages(of id: EndpointID) async throws -> WebPages {
        try await response(to: OutgoingRequest(method: .GET, path: ["endpoints", id.text, "pages"]))
    }

    /// Adds a static endpoint.
    package func add(_ endpoint: StaticEndpoint) async throws -> Endpoint {
        try await response(to: OutgoingRequest(method: .POST, path: ["endpoints"], body: body(endpoint)))
    }

    /// Removes an endpoint and releases its ID. An endpoint that is still discovered returns as a new one.
    package func removeEndpoint(_ id: EndpointID) async throws {
        try await perform(OutgoingRequest(method: .DELETE, path: ["endpoints", id.text]))
    }

    package func configuration() async throws -> [ConfigurationEntry] { try await items(at: "configuration") }

    package func devices() async throws -> [Device] { try await items(at: "devices") }

    /// Sets the label and the note of a phone. Empty texts remove them.
    package func setNote(_ note: DeviceNote, of udid: UDID) async throws {
        try await perform(OutgoingRequest(method: .PUT, path: ["devices", udid.text, "note"], body: body(note)))
    }
}

/// The profiles of plain HTTP debug servers.
extension PatchbayClient {
    package func profiles() async throws -> [ProfileSummary] { try await items(at: "profiles") }

    /// Checks a profile file, and tries it on its target. A slow server takes up to a minute.
    package func check(_ spec: ProfileCheckSpec) async throws -> ProfileCheck {
        let request = OutgoingRequest(method: .POST, path: ["profiles", "check"], body: try body(spec))
        return try await response(to: request, extraTimeout: .seconds(120))
    }
}
