/// The target of a redirect (RFC 9110, section 15.4).
package enum RedirectTarget: Hashable, Sendable, CustomStringConvertible {
    /// A path of the same origin.
    case path(String)
    /// Another origin, or a text that names no path. It is not followed, because its server is not approved.
    case other(SanitizedText)

    /// The maximum length of a path in bytes.
    private static let pathLimit = 1_024

    /// Reads the target of a response.
    ///
    /// - Parameters:
    ///   - status: The status, such as 307. Nil is returned for a response that is no redirect.
    ///   - location: The value of `Location`.
    ///   - host: The `Host` of the request, which with `http` is the origin.
    ///   - current: The path of the request.
    package init?(status: Int, location: String?, host: String, current: String) {
        guard (300..<400).contains(status) else { return nil }
        let isRepeatable = [301, 302, 307, 308].contains(status)
        guard isRepeatable, let location, let path = Self.path(location, host, current) else {
            self = .other(SanitizedText(location ?? "an unnamed place", limit: 200))
            return
        }
        self = .path(path)
    }

    package var description: String {
        switch self {
        case .path(let path): path
        case .other(let place): place.text
        }
    }

    private static func path(_ location: String, _ host: String, _ current: String) -> String? {
        // The fragment is for the client.
        var rest = location.prefix { $0 != "#" }
        if let scheme = ["http://", "//"].first(where: { rest.lowercased().hasPrefix($0) }) {
            rest = rest.dropFirst(scheme.count)
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            let names = [authority.lowercased(), "\(authority.lowercased()):80"]
            guard names.contains(host.lowercased()) else { return nil }
            rest = rest.dropFirst(authority.count)
            if !rest.hasPrefix("/") { rest = "/" + rest }
        } else if !rest.hasPrefix("/") {
            // A colon before the first slash ends a scheme (RFC 3986, section 4.2).
            guard !rest.isEmpty, !rest.prefix(while: { $0 != "/" && $0 != "?" }).contains(":") else { return nil }
            let folder = current.prefix { $0 != "?" }.lastIndex(of: "/").map { current[...$0] } ?? "/"
            rest = folder + rest
        }
        let isPlain = rest.utf8.count <= pathLimit && rest.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isPlain ? String(rest) : nil
    }
}
