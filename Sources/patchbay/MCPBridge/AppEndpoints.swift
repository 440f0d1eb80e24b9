import Model

/// The endpoints of an app, as `--app` selects them.
struct AppEndpoints {
    /// The endpoints of which a client may choose one: those where the app runs, or all if it runs on none.
    let candidates: [Endpoint]
    /// False if only a question to the client can tell which endpoint is meant.
    private let mayChoose: Bool

    /// Selects endpoints by the rules of `EndpointMatch`: an unapproved one counts for nothing.
    ///
    /// - Parameters:
    ///   - name: The bundle identifier or the name of the app, in any case.
    ///   - endpoints: The list of the broker.
    /// - Throws: `CLIError` if no approved endpoint has the app.
    init(of name: String, among endpoints: [Endpoint]) throws(CLIError) {
        let shown = SanitizedText(name)
        switch EndpointMatch(endpoints.filter { $0.isApp(name) }) {
        case .one(let endpoint): (candidates, mayChoose) = ([endpoint], true)
        case .several(let all):
            let found = all.filter { $0.approval.wasApproved }
            guard !found.isEmpty else {
                throw CLIError.notPermitted(
                    "the app \(shown) is known only from endpoints that no owner has approved",
                    candidates: all.sorted { $0.id < $1.id }.map(\.choiceLine),
                    try: "patchbay approve ID"
                )
            }
            let running = found.filter { $0.state == .online || $0.state == .suspect }
            // An app that registers itself chooses its name, so it does not replace an absent app without a question.
            let isReplaced = !running.contains { $0.registered != true } && found.contains { $0.registered != true }
            candidates = (running.isEmpty || isReplaced ? found : running).sorted { $0.id < $1.id }
            mayChoose = found.count == all.count
        case .unapproved(let endpoint):
            throw CLIError.notPermitted(
                "the app \(shown) is known only as \(endpoint.id), which no owner has approved",
                try: "patchbay show \(endpoint.id), then patchbay approve \(endpoint.id)"
            )
        case .none:
            let apps = Set(endpoints.map(\.app.text))
            let near = CommandSuggestion.nearest(to: name.lowercased(), among: apps.sorted())
            throw .notFound(
                "the app \(shown) has not run on any phone that the broker knows",
                try: near.map { "start the app, or use its name in `patchbay list`: --app \($0)" }
                    ?? "start a debug build of the app, then see patchbay list"
            )
        }
    }

    /// Returns the endpoint to use without a question: the only one, or the only one under a lease of the client's own
    /// grant.
    func automaticChoice(leases: [Lease]) -> Endpoint? {
        guard mayChoose else { return nil }
        if candidates.count == 1 { return candidates.first }
        let own = leases.filter(\.isOwn)
        let leased = candidates.filter { endpoint in
            own.contains { $0.endpoint == endpoint.id || ($0.device != nil && $0.device == endpoint.location.udid) }
        }
        return leased.count == 1 ? leased.first : nil
    }
}

extension Endpoint {
    /// The endpoint in a list of choices: its ID, its phone or host, and its state.
    var choiceLine: String {
        let place = location.deviceName ?? location.machine
        return ([id.text, place?.text, state.rawValue] as [String?]).compactMap(\.self).joined(separator: "  ")
    }
}
