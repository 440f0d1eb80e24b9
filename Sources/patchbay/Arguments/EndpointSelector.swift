import Model

/// Finds the endpoint that a person means: by id, the beginning of an id, its name, its app, or its phone's UDID.
struct EndpointSelector {
    let text: String
    /// The command to repeat with a candidate's id: `patchbay show`.
    let command: String

    /// The closest way of meaning it that fits anything decides.
    ///
    /// - Throws: `CLIError`, with the candidates where several fit.
    func choose(among endpoints: [Endpoint]) throws(CLIError) -> Endpoint {
        guard !text.isEmpty else { throw .usage("an empty name fits every endpoint", try: "\(command) ID") }
        let wanted = text.lowercased()
        let ways: [(Endpoint) -> Bool] = [
            { $0.id.text == wanted },
            { $0.isNamed(wanted) },
            { endpoint in
                DeviceSelector.fits(wanted, endpoint.place.udid)
                    || endpoint.routes.contains { DeviceSelector.fits(wanted, $0.route.udid) }
            },
            { $0.id.text.hasPrefix(wanted) },
            { $0.isApp(wanted) },
        ]
        for way in ways {
            let found = endpoints.filter(way)
            if let only = found.first, found.count == 1 { return only }
            if !found.isEmpty { throw ambiguous(found) }
        }
        let shown = SanitizedText(text)
        guard !endpoints.isEmpty else {
            throw .notFound("no endpoint is called \"\(shown)\": none is listed at all", try: "patchbay doctor")
        }
        let near = CommandSuggestion.nearest(to: wanted, among: endpoints.map(\.id.text))
        throw .notFound("no endpoint is called \"\(shown)\"", try: near.map { "\(command) \($0)" } ?? "patchbay list")
    }

    private func ambiguous(_ found: [Endpoint]) -> CLIError {
        let sorted = found.sorted { $0.id < $1.id }
        let width = sorted.map(\.id.text.count).max() ?? 0
        let lines = sorted.map { "\($0.id.text.padded(to: width))  \($0.app)  \($0.state.rawValue)" }
        return CLIError(
            status: .usage,
            message: "\"\(SanitizedText(text))\" fits \(found.count) endpoints",
            candidates: lines,
            remedy: "\(command) \(sorted[0].id)"
        )
    }
}

extension Route {
    /// The phone at the end of the cable.
    var udid: UDID? {
        switch self {
        case .usb(let route): route.udid
        case .lan: nil
        }
    }
}
