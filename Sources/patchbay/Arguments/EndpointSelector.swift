import Model

/// Resolves an endpoint by ID, name, phone UDID, ID prefix or app.
struct EndpointSelector {
    let text: String
    /// The command for the hint; an ID is appended: `patchbay show`.
    let command: String

    /// Selects an endpoint from a list. The first kind of match in the order above decides. An endpoint that the list
    /// shows as part of another is selected by its own ID.
    ///
    /// - Throws: `CLIError` if no endpoint matches, or with the candidates if several match.
    func choose(among endpoints: [Endpoint]) throws(CLIError) -> Endpoint {
        guard !text.isEmpty else { throw .usage("the endpoint name is empty", try: "\(command) ID") }
        let wanted = text.lowercased()
        let parts = endpoints.flatMap { $0.combinedWith ?? [] }
        if let part = parts.first(where: { $0.id.text == wanted }) { return part }
        let criteria: [(Endpoint) -> Bool] = [
            { $0.isCalled(wanted) },
            { $0.isNamed(wanted) },
            { endpoint in
                DeviceSelector.matches(wanted, endpoint.location.udid)
                    || endpoint.routes.contains { DeviceSelector.matches(wanted, $0.route.udid) }
            },
            { $0.id.text.hasPrefix(wanted) },
            { $0.isApp(wanted) },
        ]
        for criterion in criteria {
            let found = endpoints.filter(criterion)
            if let only = found.first, found.count == 1 { return only }
            if !found.isEmpty { throw ambiguous(found) }
        }
        let shown = SanitizedText(text)
        guard !endpoints.isEmpty else {
            throw .notFound("no endpoint matches \"\(shown)\": the list is empty", try: "patchbay doctor")
        }
        let near = CommandSuggestion.nearest(to: wanted, among: endpoints.map(\.id.text))
        throw .notFound("no endpoint matches \"\(shown)\"", try: near.map { "\(command) \($0)" } ?? "patchbay list")
    }

    private func ambiguous(_ found: [Endpoint]) -> CLIError {
        let sorted = found.sorted { $0.id < $1.id }
        let width = sorted.map(\.id.text.count).max() ?? 0
        let lines = sorted.map { "\($0.id.text.padded(to: width))  \($0.app)  \($0.state.rawValue)" }
        return CLIError(
            status: .usage,
            message: "\"\(SanitizedText(text))\" matches \(found.count) endpoints",
            candidates: lines,
            hint: "\(command) \(sorted[0].id)"
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
