import Model

/// The head of an HTTP/1.1 response, as far as it is used here.
package struct HTTPResponseHead: Hashable, Sendable {
    package let status: Int
    /// The minor version of HTTP/1.
    let minorVersion: Int
    /// Header fields in their order, with names in lower case.
    let headers: [Header]

    struct Header: Hashable, Sendable {
        let name: String
        let value: String
    }

    /// Returns all values of a header; several fields with one name form one list (RFC 9110, section 5.3).
    func values(of name: String) -> [String] { headers.filter { $0.name == name }.map(\.value) }

    /// Returns the value of a header that may occur once; nil if the header is missing or repeated.
    package subscript(name: String) -> String? {
        let values = values(of: name)
        return values.count == 1 ? values[0] : nil
    }

    /// The media type without parameters, in lower case.
    var mediaType: String {
        (self["content-type"] ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
    }

    /// Indicates whether the server closes the connection after this response. RFC 9112, section 9.3: HTTP/1.1 persists
    /// unless `close` is present; HTTP/1.0 closes.
    var closesConnection: Bool {
        let options = values(of: "connection").flatMap { $0.lowercased().split(separator: ",") }
        return minorVersion == 0 || options.contains { $0.filter { $0 != " " && $0 != "\t" } == "close" }
    }
}

extension HTTPResponseHead {
    /// Parses a response head.
    ///
    /// - Parameter bytes: The status line and the header fields, without the empty line.
    /// - Throws: `ExchangeError.notHTTP`, `.invalid`.
    init(parsing bytes: ArraySlice<UInt8>) throws(ExchangeError) {
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        }[...]
        guard let first = lines.popFirst() else { throw .notHTTP }
        (minorVersion, status) = try Self.statusLine(first)
        var headers: [Header] = []
        for line in lines { headers.append(try Self.header(line)) }
        self.headers = headers
    }

    /// Parses a status line such as `HTTP/1.1 200 OK` (RFC 9112, section 4).
    private static func statusLine(_ line: ArraySlice<UInt8>) throws(ExchangeError) -> (minor: Int, status: Int) {
        let words = line.split(separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count >= 2, words[0].count == 8, words[0].starts(with: "HTTP/1.".utf8),
            let minor = number(words[0].suffix(1)), words[1].count == 3, let status = number(words[1]),
            (100...599).contains(status)
        else { throw .notHTTP }
        return (minor, status)
    }

    /// Parses a header field: no whitespace before the colon (RFC 9112, section 5) and no line folding (5.2).
    private static func header(_ line: ArraySlice<UInt8>) throws(ExchangeError) -> Header {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
            line[..<colon].allSatisfy(\.isTokenByte)
        else { throw .invalid("an invalid header line") }
        var value = line[(colon + 1)...]
        while let byte = value.first, isBlank(byte) { value.removeFirst() }
        while let byte = value.last, isBlank(byte) { value.removeLast() }
        guard !value.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw .invalid("a control character in a header")
        }
        return Header(
            name: String(decoding: line[..<colon], as: UTF8.self).lowercased(),
            value: String(decoding: value, as: UTF8.self)
        )
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Parses a number of digits only.
    static func number(_ bytes: some Collection<UInt8>) -> Int? {
        bytes.allSatisfy(\.isDigit) ? Int(String(decoding: bytes, as: UTF8.self)) : nil
    }
}
