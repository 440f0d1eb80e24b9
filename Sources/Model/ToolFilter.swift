/// The tools of apps that a grant may call.
package enum ToolFilter: Hashable, Sendable {
    case all
    /// Only tools that are known to change nothing.
    case readOnly
    /// Only tools with these names, whatever they change.
    case named(Set<String>)

    /// Returns whether the filter allows a call of a tool, whose effect Patchbay has determined.
    package func allows(_ tool: String, isReadOnly: Bool) -> Bool {
        switch self {
        case .all: true
        case .readOnly: isReadOnly
        // Swift's strings are equal if they are canonically equivalent, and a set compares them so.
        case .named(let names): names.contains { $0.utf8.elementsEqual(tool.utf8) }
        }
    }

    /// Returns whether the other filter allows every tool of this filter, in every app.
    package func isSubset(of other: ToolFilter) -> Bool {
        switch (self, other) {
        case (_, .all), (.readOnly, .readOnly): true
        case (.named(let mine), .named(let theirs)): mine.isSubset(of: theirs)
        // A name says nothing about the effect of a tool, so neither kind is ever a subset of the other.
        case (.all, _), (.readOnly, .named), (.named, .readOnly): false
        }
    }
}

/// Describes the filter in a sentence: `read-only tools`, `the tools get_elements, screenshot`.
extension ToolFilter: CustomStringConvertible {
    package var description: String {
        switch self {
        case .all: "all tools"
        case .readOnly: "read-only tools"
        case .named(let names):
            (names.count == 1 ? "the tool " : "the tools ")
                + names.sorted().map { SanitizedText($0, limit: 128).text }.joined(separator: ", ")
        }
    }
}

/// Encodes as `"all"`, `"read-only"` or `{"named": […]}`, sorted.
extension ToolFilter: Codable {
    private enum Keys: String, CodingKey { case named }

    package init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) {
            switch word {
            case "all": self = .all
            case "read-only": self = .readOnly
            default:
                throw DecodingError.dataCorrupted(
                    .init(
                        codingPath: decoder.codingPath,
                        debugDescription: "the words of a tool filter are \"all\" and \"read-only\""
                    )
                )
            }
            return
        }
        let container = try decoder.container(keyedBy: Keys.self)
        self = .named(Set(try container.decode([String].self, forKey: .named)))
    }

    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .all, .readOnly:
            var container = encoder.singleValueContainer()
            try container.encode(self == .all ? "all" : "read-only")
        case .named(let names):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(names.sorted(), forKey: .named)
        }
    }
}
