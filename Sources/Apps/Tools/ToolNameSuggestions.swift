package import Model
import SystemIO

/// The tools with names near to a wrong name, as the end of an error message.
package struct ToolNameSuggestions: Hashable, Sendable, CustomStringConvertible {
    private let names: [String]

    package var isEmpty: Bool { names.isEmpty }

    /// Finds near names. An alias is added as prefix for a principal that sees several apps.
    package init(_ name: String, _ tools: [JSONObject], alias: String? = nil) {
        names = SimilarNameFinder.of(name, among: tools.compactMap { $0["name"]?.string }).map { name in
            SanitizedText(alias.map { ToolNamespace.name(of: name, alias: $0) } ?? name, limit: 128).text
        }
    }

    package var description: String { names.isEmpty ? "" : "; the nearest names are \(names.joined(separator: ", "))" }
}
