import Model

/// Decides for `patchbay secret scan` which session token is uploaded for which endpoint, and when. Performs no I/O.
///
/// A token belongs to the AppReveal endpoint with the port of its URL. If there are several, the host of the URL selects one. An upload is due when that endpoint is listed.
/// The upload is due again if the broker detects a new launch of the app within 30 s.
struct SecretUploadQueue {
    /// An upload that is due.
    struct Upload: Equatable {
        let endpoint: EndpointID
        let session: SessionURL
        /// The launch of the app in the broker's list.
        let launch: String
    }

    private struct Session {
        let url: SessionURL
        let found: ContinuousClock.Instant
        var uploaded: Upload?
        /// The endpoint for which the broker rejected the token. The upload is retried when the endpoint changes.
        var refused: Endpoint?
        /// The reason why the token is not uploaded.
        var obstacle: CLIError?
    }

    /// The maximum number of apps in one input; the tokens of further apps are ignored.
    private static let limit = 64
    /// A launch that the broker detects later than this after the token is a different launch.
    private static let relaunchWindow = Duration.seconds(30)

    /// The endpoint of `--endpoint`; nil to find endpoints by port.
    let selector: EndpointSelector?
    /// The broker's list; nil until the first snapshot.
    private var endpoints: [EndpointID: Endpoint]?
    private var sessions: [SessionURL.Origin: Session] = [:]

    init(selector: EndpointSelector? = nil) { self.selector = selector }

    /// True if every token is uploaded.
    var isDone: Bool { sessions.values.allSatisfy { $0.uploaded != nil } }

    /// The ports of apps without an uploaded token, with the reason.
    var missing: [(port: UInt16, obstacle: CLIError)] {
        let unasked = CLIError.temporary("the broker did not respond", try: "patchbay doctor")
        return sessions.filter { $0.value.uploaded == nil }.sorted { $0.key.port < $1.key.port }
            .map { ($0.key.port, $0.value.obstacle ?? unasked) }
    }

    /// Adds a token; replaces an earlier token of the same app.
    mutating func add(_ url: SessionURL, at now: ContinuousClock.Instant) {
        guard sessions[url.origin] != nil || sessions.count < Self.limit else { return }
        if sessions[url.origin]?.url != url { sessions[url.origin] = Session(url: url, found: now) }
    }

    /// Replaces the broker's list.
    mutating func setEndpoints(_ list: [Endpoint]) {
        endpoints = Dictionary(list.map { ($0.id, $0) }) { $1 }
    }

    /// Applies a change to the broker's list.
    mutating func apply(_ change: EndpointChange) {
        endpoints?[change.endpoint.id] = change.kind == .removed ? nil : change.endpoint
    }

    /// Returns the uploads that are due.
    mutating func dueUploads(at now: ContinuousClock.Instant) -> [Upload] {
        guard let endpoints else { return [] }
        return sessions.keys.sorted { $0.port < $1.port }.compactMap { origin in
            guard let session = sessions[origin] else { return nil }
            let endpoint: Endpoint
            switch choose(origin, among: Array(endpoints.values)) {
            case .success(let chosen): endpoint = chosen
            case .failure(let error):
                if session.uploaded == nil { sessions[origin]?.obstacle = error }
                return nil
            }
            let upload = Upload(
                endpoint: endpoint.id,
                session: session.url,
                launch: Self.launch(of: endpoint, origin.port)
            )
            guard session.uploaded != upload, session.refused != endpoint else { return nil }
            guard session.uploaded == nil || now - session.found < Self.relaunchWindow else { return nil }
            return upload
        }
    }

    /// Records a successful upload.
    mutating func didUpload(_ upload: Upload) {
        guard sessions[upload.session.origin]?.url == upload.session else { return }
        sessions[upload.session.origin]?.uploaded = upload
        sessions[upload.session.origin]?.obstacle = nil
    }

    /// Records a rejected upload, which is not retried until the endpoint changes.
    mutating func didReject(_ upload: Upload, _ obstacle: CLIError) {
        guard sessions[upload.session.origin]?.url == upload.session else { return }
        sessions[upload.session.origin]?.refused = endpoints?[upload.endpoint]
        sessions[upload.session.origin]?.obstacle = obstacle
    }

    private func choose(_ origin: SessionURL.Origin, among endpoints: [Endpoint]) -> Result<Endpoint, CLIError> {
        let port = origin.port
        if let selector {
            do { return .success(try selector.choose(among: endpoints)) } catch { return .failure(error) }
        }
        switch EndpointMatch(endpoints.filter { $0.kind == .appreveal && $0.routes.contains { $0.port == port } }) {
        // The broker refuses a secret for an unapproved endpoint, and its error names the address.
        case .one(let only), .unapproved(let only): return .success(only)
        case .none: return .failure(.notFound("no AppReveal app with port \(port) is listed", try: "patchbay list"))
        case .several(let found):
            let fitting = found.filter { endpoint in endpoint.routes.contains { origin.fits($0.route) } }
            if let only = fitting.first, fitting.count == 1 { return .success(only) }
            return .failure(
                .usage(
                    "port \(port) matches \(found.count) endpoints; select one with --endpoint",
                    try: "patchbay secret scan --endpoint ID"
                )
            )
        }
    }

    private static func launch(of endpoint: Endpoint, _ port: UInt16) -> String {
        "\(endpoint.launchID?.text ?? "") \(endpoint.routes.contains { $0.port == port } ? port : 0)"
    }
}
