import Apps
import Model

/// A short description of an endpoint for agents.
///
/// Text from the app or the network is sanitized and in separate members. An unapproved endpoint is described by its ID
/// only, without such text.
struct EndpointSummary: Hashable, Sendable {
    /// The maximum length of a name; longer names are truncated.
    private static let nameLimit = 40

    let endpoint: Endpoint
    /// True if the app requires its session token and the broker has none.
    let needsToken: Bool
    let tools: Int?

    init(_ endpoint: Endpoint, needsToken: Bool, tools: Int?) {
        self.endpoint = endpoint
        self.needsToken = needsToken
        self.tools = tools
    }

    var isApproved: Bool { endpoint.approval == .approved }

    /// The summary as JSON. Empty members are omitted. Without `auth`, no token is missing.
    var json: JSONObject {
        var row: JSONObject = ["id": .string(endpoint.id.text)]
        if isApproved {
            row["app"] = Self.name(endpoint.app)
            row["version"] = endpoint.version.flatMap(Self.name)
            row["device"] = endpoint.location.device.flatMap(Self.name)
            row["platform"] = endpoint.location.udid.map { .string($0.platform.rawValue) }
        }
        row["host"] = endpoint.host.map { .string($0.name.text) }
        row["kind"] = .string(endpoint.kind.text)
        row["via"] = endpoint.via.map(JSON.string)
        row["state"] = .string(endpoint.state.rawValue)
        row["staleSince"] = (endpoint.host?.staleSince).map { .string(JSONCoding.text(of: $0)) }
        row["approval"] = isApproved ? nil : .string(endpoint.approval.rawValue)
        row["auth"] = needsToken ? "needed" : nil
        row["lease"] = endpoint.lease.map { lease in
            let holder: JSON = lease.isOwn ? "you" : .string(lease.holder.text)
            var summary: JSONObject = ["holder": holder]
            summary["until"] = lease.expiresAt.map { .string(JSONCoding.text(of: $0)) }
            return .object(summary)
        }
        row["possiblySameAs"] = endpoint.possiblySameAs.map { .array($0.map { .string($0.text) }) }
        row["tools"] = tools.map { .number(JSONNumber($0)) }
        // The number of tools says that an MCP server has tools.
        row["capabilities"] = Self.list(endpoint.capabilities?.filter { $0 != "tools" })
        row["limits"] = Self.list(endpoint.limits)
        return row
    }

    /// The state of the endpoint and the reason that prevents a call, for clients that show text only.
    var status: String {
        var words = [endpoint.state.rawValue]
        if endpoint.host?.staleSince != nil { words.append("may be outdated: the team's registry is unreachable") }
        if !isApproved { words.append("not approved") } else if needsToken { words.append("needs token") }
        if let lease = endpoint.lease { words.append(lease.isOwn ? "leased by you" : "leased by another client") }
        return words.joined(separator: ", ")
    }

    private static func list(_ words: [String]?) -> JSON? {
        guard let words, !words.isEmpty else { return nil }
        return .array(words.map { .string($0) })
    }

    private static func name(_ text: SanitizedText) -> JSON? {
        text.isEmpty ? nil : .string(SanitizedText(text.text, limit: nameLimit).text)
    }
}

extension Endpoint {
    var via: String? {
        switch shownRoutes.first?.route {
        case .usb?: "usb"
        case .network?: "network"
        case nil: nil
        }
    }

    /// Returns whether one of the endpoint's names contains this text, ignoring case.
    func matches(_ text: String) -> Bool {
        let text = text.lowercased()
        let names = [id.text, app.text, name.text, location.device?.text ?? ""]
        return text.isEmpty || names.contains { $0.lowercased().contains(text) }
    }
}

extension Endpoint.Location {
    var device: SanitizedText? { machine ?? deviceName ?? udid.map { SanitizedText("\($0)".suffix(12)) } }
}
