import Model

/// The arguments of a call that the tool's schema does not declare, most often misspelled ones.
///
/// JSON Schema allows other names unless the schema refuses them (2020-12, core, section 10.3.2.3), but apps ignore them.
struct UndeclaredArguments: Sendable {
    /// The maximum number of names in a message.
    private static let limit = 5
    /// The keywords that may declare arguments outside of `properties`.
    private static let otherDeclarations = [
        "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas",
        "unevaluatedProperties",
    ]

    private let names: [String]
    /// The declared arguments that the call does not have.
    private let unused: [String]
    /// True if the schema says nothing about other names.
    private let isSchemaSilent: Bool

    init(in arguments: JSONObject, of schema: JSONObject) {
        let properties = schema["properties"]?.object
        let declaresMore = Self.otherDeclarations.contains { schema[$0] != nil }
        names = properties == nil || declaresMore ? [] : Self.names(of: arguments, exceptThoseOf: properties ?? [:])
        unused = properties.map { Self.names(of: $0, exceptThoseOf: arguments) } ?? []
        isSchemaSilent = schema["additionalProperties"] == nil
    }

    private static func names(of object: JSONObject, exceptThoseOf other: JSONObject) -> [String] {
        let known = Set(other.members.map { Array($0.name.utf8) })
        return object.members.map(\.name).filter { !known.contains(Array($0.utf8)) }
    }

    /// The end of a refusal: each undeclared name that resembles a declared one.
    var suggestions: String {
        names.prefix(Self.limit).compactMap { name in
            nearest(name).map { "; \"\(shown(name))\" is not an argument, did you mean \"\($0)\"?" }
        }
        .joined()
    }

    /// The warning for a call that was delivered; nil if every argument is declared or the schema allows others.
    func warning(for tool: String) -> String? {
        guard isSchemaSilent, !names.isEmpty else { return nil }
        let list = names.prefix(Self.limit).map { name in
            "\"\(shown(name))\"" + (nearest(name).map { " (did you mean \"\($0)\"?)" } ?? "")
        }
        let verb = names.count == 1 ? "is not an argument" : "are not arguments"
        return """
            warning by Patchbay: \(list.joined(separator: ", ")) \(verb) of \(SanitizedText(tool, limit: 128)), and the app \
            may have ignored it
            """
    }

    private func nearest(_ name: String) -> String? {
        SimilarNameFinder.of(name, among: unused, count: 1).first.map(shown)
    }

    private func shown(_ name: String) -> String { SanitizedText(name, limit: 64).text }
}
