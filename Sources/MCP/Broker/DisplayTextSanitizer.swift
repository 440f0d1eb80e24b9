import JSON
import Model

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
