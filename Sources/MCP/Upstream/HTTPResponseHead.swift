/// The first part of an HTTP/1.1 answer, as much of it as is used here.
struct HTTPResponseHead: Hashable, Sendable {
    let status: Int
    /// Of HTTP/1.
    let minorVersion: Int
    /// Names in lower case, in the order they came.
    let headers: [Header]

    struct Header: Hashable, Sendable {
        let name: String
        let value: String
    }

    /// Every value of a header; several lines of one name are one list (RFC 9110, section 5.3).
    func values(of name: String) -> [String] { headers.filter { $0.name == name }.map(\.value) }

    /// The value of a header that may come once; nil where it does not, or comes more than once.
    subscript(name: String) -> String? {
        let values = values(of: name)
        return values.count == 1 ? values[0] : nil
    }

    /// Without its parameters, in lower case.
    var mediaType: String {
        (self["content-type"] ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
    }

    /// RFC 9112, section 9.3: HTTP/1.1 goes on unless it says `close`, HTTP/1.0 ends.
    var isLast: Bool {
        let options = values(of: "connection").flatMap { $0.lowercased().split(separator: ",") }
        return minorVersion == 0 || options.contains { $0.filter { $0 != " " && $0 != "\t" } == "close" }
    }
}
