import Foundation
import Testing

/// No type is larger than a reader can hold: 500 lines with all its extensions in its module.
@Suite struct TypeSizeTests {
    private static let limit = 500
    /// The client has one method for each route of the API, and no logic.
    private static let exempt: Set = ["Client/PatchbayClient"]

    /// Returns the lines of each type, by module and name.
    ///
    /// A top-level declaration begins in the first column, and ends with a brace in the first column: `swift format`
    /// makes sure of both.
    private static func sizes() throws -> [String: Int] {
        var sizes: [String: Int] = [:]
        for file in try ProjectFile.swift(in: "Sources") {
            let module = file.path.split(separator: "/")[1]
            var current: String?
            for line in try file.lines() {
                if let match = line.firstMatch(
                    of: /^(?:[@a-z]\S* )*(?:struct|class|enum|actor|protocol|extension) (?<name>\w+)[^{]*\{?/
                ), !line.hasPrefix(" ") {
                    current = "\(module)/\(match.name)"
                }
                if let name = current { sizes[name, default: 0] += 1 }
                if line.hasPrefix("}") || line.hasSuffix("{}") && !line.hasPrefix(" ") { current = nil }
            }
        }
        return sizes
    }

    @Test func `a type has at most 500 lines with all its extensions`() throws {
        let sizes = try Self.sizes()
        #expect(sizes.count > 300)
        for (name, lines) in sizes where !Self.exempt.contains(name) {
            #expect(lines <= Self.limit, "\(name) has \(lines) lines")
        }
    }
}
