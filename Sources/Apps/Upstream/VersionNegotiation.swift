import Model

/// Finds a version of MCP that a server with a handshake accepts.
///
/// The specification lets a server offer its own version. Many servers refuse a version that they do not know, so they
/// are asked again with older ones.
struct VersionNegotiation {
    private static let methodNotFound = -32_601
    /// The codes that a server may define (JSON-RPC 2.0, section 5.1).
    private static let serverErrors = -32_099 ... -32_000

    /// The version to ask with.
    private(set) var version: ProtocolVersion
    /// The headers of `initialize`. Some servers want the version in a header already there (HarperFast/harper#1611), and
    /// others refuse one that they do not know.
    private(set) var headers: [(name: String, value: String)] = []
    /// The number of refused versions.
    private(set) var refusals = 0

    init(from version: ProtocolVersion) { self.version = version }

    /// Evaluates the response to `initialize`.
    ///
    /// - Returns: Whether to ask again, with the new value of `version`.
    mutating func shouldAskAgain(after response: UpstreamResponse) -> Bool {
        let wantsHeader = response.refusal?.lowercased().contains("mcp-protocol-version") == true
        if response.outcome == nil, response.status == 400, wantsHeader, headers.isEmpty {
            headers = [("MCP-Protocol-Version", version.rawValue)]
            return true
        }
        guard let next = next(after: response), next < version else { return false }
        version = next
        if !headers.isEmpty { headers = [("MCP-Protocol-Version", version.rawValue)] }
        refusals += 1
        return true
    }

    private func next(after response: UpstreamResponse) -> ProtocolVersion? {
        let older = ProtocolVersion.allCases.last { $0 < version }
        switch response.outcome {
        case .success(let result)?:
            let answered = result["protocolVersion"]?.string
            guard let answered, ProtocolVersion(rawValue: answered) == nil else { return nil }
            return ProtocolVersion.negotiated(answered)
        case .failure(let error)?:
            guard error.code != Self.methodNotFound else { return nil }
            let supported = error.data?["supported"] ?? error.data?["supportedVersions"]
            let known = supported?.array?.compactMap { $0.string.flatMap(ProtocolVersion.init) } ?? []
            if let best = known.filter({ $0 < version }).max() { return best }
            // A code of the server's own may mean anything, such as a person who refuses the connection.
            let text = error.message.lowercased()
            let isAboutVersion = text.contains("version") || text.contains("protocol")
            return Self.serverErrors.contains(error.code) && !isAboutVersion ? nil : older
        case nil:
            let isAboutVersion = response.refusal?.lowercased().contains("version") == true
            return response.status == 400 && isAboutVersion ? older : nil
        }
    }
}

extension ProtocolVersion {
    /// Reads the version in the result of `initialize`. An unknown date counts as the newest known version before it, or
    /// as the oldest one: 2024-10-07 was a draft of 2024-11-05. A text that is no date, such as a placeholder, counts as
    /// the oldest version too. Nil for a version without a handshake, and for a newer one.
    static func negotiated(_ text: String) -> ProtocolVersion? {
        if let known = ProtocolVersion(rawValue: text) { return known.isStateless ? nil : known }
        guard isDate(text) else { return .v2024_11_05 }
        guard text < v2026_07_28.rawValue else { return nil }
        return allCases.last { $0.rawValue < text } ?? .v2024_11_05
    }

    static func isDate(_ text: String) -> Bool { text.wholeMatch(of: #/[0-9]{4}-[0-9]{2}-[0-9]{2}/#) != nil }
}
