import Client
import Model

/// Resolves an endpoint by ID, ID prefix, name, app or phone UDID.
struct EndpointSelector {
    let text: String
    /// The command for the hint; `ID` or an ID is appended: `patchbay show`.
    let command: String
    /// True for a command that serves to inspect, approve or remove unapproved endpoints.
    var takesUnapproved = false

    /// Selects an endpoint from a list by the rules of `EndpointMatch`. An endpoint that the list shows as part of another
    /// is selected by its own ID.
    ///
    /// - Throws: `CLIError` if no endpoint matches, or only an unapproved one, or with the candidates if several match.
    func choose(among endpoints: [Endpoint]) throws(CLIError) -> Endpoint {
        guard !text.isEmpty else { throw .usage("the endpoint name is empty", try: "patchbay list") }
        let wanted = text.lowercased()
        let match = EndpointMatch(text, among: endpoints) { endpoint in
            endpoint.id.text.hasPrefix(wanted) || endpoint.isApp(wanted)
                || DeviceSelector.matches(wanted, endpoint.location.udid)
                || endpoint.shownRoutes.contains { DeviceSelector.matches(wanted, $0.route.udid) }
        }
        switch match {
        case .one(let endpoint): return endpoint
        case .unapproved(let endpoint):
            guard !takesUnapproved else { return endpoint }
            throw .usage(
                "no approved endpoint matches \"\(SanitizedText(text))\", only \(endpoint.id), which is not approved",
                try: "patchbay show \(endpoint.id)"
            )
        case .several(let found): throw ambiguous(found)
        case .none: throw unknown(wanted, among: endpoints)
        }
    }

    /// Selects an endpoint from the list of a broker. If the text is an ID of a host without endpoints in the list, the
    /// broker gives the reason.
    ///
    /// - Throws: As `choose(among:)`; `ClientError`.
    func choose(_ client: PatchbayClient) async throws -> Endpoint {
        let endpoints = try await client.endpoints().endpoints
        do { return try choose(among: endpoints) } catch {
            guard error.status == .notFound, let id, let host = id.host,
                !endpoints.contains(where: { $0.host?.name == host })
            else { throw error }
            return try await client.endpoint(id)
        }
    }

    /// The text as an ID.
    private var id: EndpointID? { EndpointID(text.lowercased()) }

    private func unknown(_ wanted: String, among endpoints: [Endpoint]) -> CLIError {
        let shown = SanitizedText(text)
        guard !endpoints.isEmpty else {
            return .notFound("no endpoint matches \"\(shown)\": the list is empty", try: "patchbay doctor")
        }
        // A similar ID of another host is probably another app.
        let ids = endpoints.map(\.id).filter { id?.host == nil || $0.host == id?.host }
        let near = CommandSuggestion.nearest(to: wanted, among: ids.map(\.text))
        return .notFound("no endpoint matches \"\(shown)\"", try: near.map { "\(command) \($0)" } ?? "patchbay list")
    }

    private func ambiguous(_ found: [Endpoint]) -> CLIError {
        let sorted = found.sorted { $0.id < $1.id }
        let width = sorted.map(\.id.text.count).max() ?? 0
        let lines = sorted.map { "\($0.id.text.padded(to: width))  \($0.app)  \($0.state.rawValue)" }
        return CLIError(
            status: .usage,
            message: "\"\(SanitizedText(text))\" matches \(found.count) endpoints",
            candidates: lines,
            // A hint with one of the IDs would lead to an app that chose a name early in the alphabet.
            hint: "\(command) ID"
        )
    }
}

extension Route {
    /// The UDID of a USB route; nil for a network route.
    var udid: UDID? {
        switch self {
        case .usb(let route): route.udid
        case .network: nil
        }
    }
}
