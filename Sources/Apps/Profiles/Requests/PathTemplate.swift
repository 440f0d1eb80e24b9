import Model

/// A path with placeholders, such as `/state/{key}` or `/source?format={format}`.
///
/// Arguments cannot change the structure of the path: each fills one segment or one value of the query.
struct PathTemplate: Hashable, Sendable {
    enum Part: Hashable {
        case literal(String)
        case placeholder(String)

        init(_ text: String) { self = Placeholder.name(in: text).map(Part.placeholder) ?? .literal(text) }

        var placeholder: String? { if case .placeholder(let name) = self { name } else { nil } }
    }

    struct QueryItem: Hashable {
        let name: String
        let value: Part
    }

    let segments: [Part]
    let query: [QueryItem]

    /// The placeholders that need a value. An absent value of the query omits its item.
    var requiredPlaceholders: [String] { segments.compactMap(\.placeholder) }
    var placeholders: [String] { requiredPlaceholders + query.compactMap(\.value.placeholder) }
    /// The path if it has no placeholders.
    var literal: String? { requiredPlaceholders.isEmpty ? try? path([:]) : nil }

    /// Parses a path on the endpoint itself. Returns nil for a URL, `//host`, a `.` or `..` segment, an escape, or a
    /// character that RFC 3986 does not allow in a path.
    init?(_ text: String) {
        let halves = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let path = halves.first, path.hasPrefix("/") else { return nil }
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        // A path may end with a slash; `//` at its beginning would be a host.
        guard !segments.dropLast().contains("") else { return nil }
        self.segments = segments.map(Part.init)
        var query: [QueryItem] = []
        for item in halves.dropFirst().first?.split(separator: "&", omittingEmptySubsequences: false) ?? [] {
            let sides = item.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
            guard sides.count == 2, !sides[0].isEmpty, Self.isLiteral(sides[0]) else { return nil }
            query.append(QueryItem(name: sides[0], value: Part(sides[1])))
        }
        self.query = query
        for case .literal(let text) in self.segments + query.map(\.value) {
            guard Self.isLiteral(text), text != ".", text != ".." else { return nil }
        }
    }

    /// Fills the placeholders and returns the target of the request.
    ///
    /// - Throws: The reason, with the name of the argument as its subject.
    func target(_ values: [String: JSON]) throws(ArgumentProblem) -> String {
        var items: [String] = []
        for item in query {
            switch item.value {
            case .literal(let text): items.append("\(item.name)=\(text)")
            case .placeholder(let name):
                guard let value = values[name] else { continue }
                items.append("\(item.name)=\(try Self.text(value, named: name).urlEscaped)")
            }
        }
        return try path(values) + (items.isEmpty ? "" : "?\(items.joined(separator: "&"))")
    }

    /// Fills the placeholders of the segments.
    func path(_ values: [String: JSON]) throws(ArgumentProblem) -> String {
        var path = ""
        for segment in segments {
            switch segment {
            case .literal(let text): path += "/\(text)"
            case .placeholder(let name):
                guard let value = values[name] else { throw ArgumentProblem("\"\(name)\" is missing") }
                let text = try Self.text(value, named: name)
                // Some servers decode escapes before they look for the route.
                let isOneSegment = text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && !"/\\%".utf8.contains($0) }
                guard isOneSegment, !["", ".", ".."].contains(text) else {
                    throw ArgumentProblem(
                        "\"\(name)\" becomes one part of a path; it must not be empty, \".\" or \"..\", nor contain "
                            + "/, \\, % or control characters"
                    )
                }
                path += "/\(text.urlEscaped)"
            }
        }
        return path
    }

    private static func text(_ value: JSON, named name: String) throws(ArgumentProblem) -> String {
        switch value {
        case .string(let text): return text
        case .number(let number): return number.text
        case .bool(let bool): return "\(bool)"
        case .null, .array, .object:
            throw ArgumentProblem("\"\(name)\" must be a text, a number, true or false")
        }
    }

    /// Returns whether the text consists of the characters of a path segment (RFC 3986, section 3.3) without escapes.
    private static func isLiteral(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0.isUnreserved || "!$'()*+,;:@".utf8.contains($0) }
    }
}

/// The reason why an argument cannot be used.
struct ArgumentProblem: Error, Hashable {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

/// The notation `{name}` for a value that is filled in.
enum Placeholder {
    /// Returns the name if the whole text is a placeholder.
    static func name(in text: String) -> String? {
        guard text.hasPrefix("{"), text.hasSuffix("}"), isName(text.dropFirst().dropLast()) else { return nil }
        return String(text.dropFirst().dropLast())
    }

    /// Returns whether the text can be the name of an argument.
    static func isName(_ text: some StringProtocol) -> Bool {
        String(text).wholeMatch(of: #/[A-Za-z_][A-Za-z0-9_]{0,47}/#) != nil
    }
}
