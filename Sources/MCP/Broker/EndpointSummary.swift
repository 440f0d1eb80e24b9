import JSON
import Model

/// An endpoint in as few words as an agent needs.
///
/// Text that came from the app or from the network is in fields of its own, cleaned; of an endpoint that nobody has approved
/// there is none at all but for its id.
struct EndpointSummary: Hashable, Sendable {
    /// Longer names are cut.
    private static let nameLimit = 40

    let endpoint: Endpoint
    /// Whether the app wants its session token, and we have none.
    let needsToken: Bool
    let tools: Int?

    init(_ endpoint: Endpoint, needsToken: Bool, tools: Int?) {
        self.endpoint = endpoint
        self.needsToken = needsToken
        self.tools = tools
    }

    var isApproved: Bool { endpoint.approval == .approved }

    /// Absent members are empty ones; without `auth` none is needed that is not there.
    var json: JSONObject {
        var row: JSONObject = ["id": .string(endpoint.id.text)]
        if isApproved {
            row["app"] = Self.name(endpoint.app)
            row["ver"] = endpoint.version.flatMap(Self.name)
            row["dev"] = endpoint.place.device.flatMap(Self.name)
        }
        row["kind"] = .string(endpoint.kind.text)
        row["via"] = endpoint.via.map(JSON.string)
        row["state"] = .string(endpoint.state.rawValue)
        row["approval"] = isApproved ? nil : .string(endpoint.approval.rawValue)
        row["auth"] = needsToken ? "needed" : nil
        row["tools"] = tools.map { .number(JSONNumber($0)) }
        return row
    }

    /// For a reader of the text alone: whether it is there, and what stands in the way of calling it.
    var status: String {
        var words = [endpoint.state.rawValue]
        if !isApproved { words.append("not approved") } else if needsToken { words.append("needs token") }
        return words.joined(separator: ", ")
    }

    private static func name(_ text: SanitizedText) -> JSON? {
        text.isEmpty ? nil : .string(SanitizedText(text.text, limit: nameLimit).text)
    }
}

extension Endpoint {
    /// AppReveal from 0.10.0 on says so in its advert.
    var wantsToken: Bool { txt["auth"] == "session-token" }

    var via: String? {
        switch routes.first?.route {
        case .usb?: "usb"
        case .lan?: "lan"
        case nil: nil
        }
    }

    /// Whether a part of its names is this text.
    func fits(_ text: String) -> Bool {
        let text = text.lowercased()
        let names = [id.text, app.text, name.text, place.device?.text ?? ""]
        return text.isEmpty || names.contains { $0.lowercased().contains(text) }
    }
}

extension Endpoint.Place {
    var device: SanitizedText? { host ?? udid.map { SanitizedText("\($0)".suffix(12)) } }
}

/// Text of an app on its way to an agent.
enum DisplayTextSanitizer {
    private static let limit = 2_000

    /// The same JSON without what hides or disguises text in its titles and descriptions; names and values stay as they are.
    static func cleaned(_ json: JSON) -> JSON {
        switch json {
        case .array(let elements): .array(elements.map(cleaned))
        case .object(let object):
            .object(
                JSONObject(
                    object.members.map { member in
                        let isText = member.name == "description" || member.name == "title"
                        let text = isText ? member.value.string.map { JSON.string(cleaned($0)) } : nil
                        return JSONObject.Member(name: member.name, value: text ?? cleaned(member.value))
                    }
                )
            )
        default: json
        }
    }

    private static func cleaned(_ text: String) -> String {
        text.prefix(limit).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            .map { SanitizedText($0, limit: limit).text }.joined(separator: "\n")
    }
}
