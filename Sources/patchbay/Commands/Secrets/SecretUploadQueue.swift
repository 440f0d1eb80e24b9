import Model

/// Which session token goes to which endpoint, and when: the decisions of `patchbay secret scan`, without its calls.
///
/// A token belongs to the AppReveal endpoint with its port. It is due once that endpoint is listed and approved, and due
/// again when the broker learns only afterwards that the app was launched anew.
struct SecretUploadQueue {
    /// One token that is to be given to the broker now.
    struct Due: Equatable {
        let endpoint: EndpointID
        let session: SessionURL
        /// The launch that the broker knows of.
        let launch: String
    }

    private struct Session {
        let url: SessionURL
        let found: ContinuousClock.Instant
        var given: Due?
        /// The last one that the broker said no to; it is asked again when the endpoint has changed.
        var refused: Endpoint?
        /// What keeps it from the broker.
        var obstacle: CLIError?
    }

    /// How many apps one stream may have.
    private static let limit = 64
    /// After this a launch that the broker learns of is another one than the token's.
    private static let patience = Duration.seconds(30)

    /// What the person said, instead of the port.
    let selector: EndpointSelector?
    /// Nil as long as the broker has not told its list.
    private var endpoints: [EndpointID: Endpoint]?
    private var sessions: [UInt16: Session] = [:]

    init(selector: EndpointSelector? = nil) { self.selector = selector }

    /// Whether every token that was found is where it belongs.
    var isDone: Bool { sessions.values.allSatisfy { $0.given != nil } }

    /// The ports of apps whose token the broker does not have, with what kept it from there.
    var missing: [(port: UInt16, obstacle: CLIError)] {
        let unasked = CLIError(status: .temporary, message: "the broker could not be asked", remedy: "patchbay doctor")
        return sessions.filter { $0.value.given == nil }.sorted { $0.key < $1.key }
            .map { ($0.key, $0.value.obstacle ?? unasked) }
    }

    /// A token was found; it takes the place of an earlier one of the same app.
    mutating func found(_ url: SessionURL, at now: ContinuousClock.Instant) {
        guard sessions[url.port] != nil || sessions.count < Self.limit else { return }
        if sessions[url.port]?.url != url { sessions[url.port] = Session(url: url, found: now) }
    }

    /// The broker told its whole list.
    mutating func listed(_ list: [Endpoint]) {
        endpoints = Dictionary(list.map { ($0.id, $0) }) { $1 }
    }

    mutating func changed(_ change: EndpointChange) {
        endpoints?[change.endpoint.id] = change.kind == .removed ? nil : change.endpoint
    }

    /// What to give to the broker now.
    mutating func due(at now: ContinuousClock.Instant) -> [Due] {
        guard let endpoints else { return [] }
        return sessions.keys.sorted().compactMap { port in
            guard let session = sessions[port] else { return nil }
            let endpoint: Endpoint
            switch choose(port, among: Array(endpoints.values)) {
            case .success(let chosen): endpoint = chosen
            case .failure(let complaint):
                if session.given == nil { sessions[port]?.obstacle = complaint }
                return nil
            }
            let due = Due(endpoint: endpoint.id, session: session.url, launch: Self.launch(of: endpoint, port))
            guard session.given != due, session.refused != endpoint else { return nil }
            guard session.given == nil || now - session.found < Self.patience else { return nil }
            return due
        }
    }

    mutating func given(_ due: Due) {
        guard sessions[due.session.port]?.url == due.session else { return }
        sessions[due.session.port]?.given = due
        sessions[due.session.port]?.obstacle = nil
    }

    /// The broker said no; as long as the endpoint stays as it is, it would say so again.
    mutating func refused(_ due: Due, _ obstacle: CLIError) {
        guard sessions[due.session.port]?.url == due.session else { return }
        sessions[due.session.port]?.refused = endpoints?[due.endpoint]
        sessions[due.session.port]?.obstacle = obstacle
    }

    private func choose(_ port: UInt16, among endpoints: [Endpoint]) -> Result<Endpoint, CLIError> {
        if let selector {
            do { return .success(try selector.choose(among: endpoints)) } catch { return .failure(error) }
        }
        let fitting = endpoints.filter { $0.kind == .appreveal && $0.routes.contains { $0.port == port } }
        if let only = fitting.first, fitting.count == 1 { return .success(only) }
        let command = "patchbay secret scan --endpoint ID"
        return fitting.isEmpty
            ? .failure(.notFound("no AppReveal app with port \(port) is listed", try: "patchbay list"))
            : .failure(.usage("port \(port) fits \(fitting.count) endpoints; name one with --endpoint", try: command))
    }

    private static func launch(of endpoint: Endpoint, _ port: UInt16) -> String {
        "\(endpoint.boot?.text ?? "") \(endpoint.routes.contains { $0.port == port } ? port : 0)"
    }
}
