import Model

/// The machine and the socket of a broker that is reached through ssh: `ssh://[user@]host[:port][/path]`.
///
/// Every part becomes an argument of ssh(1) or a word of a remote shell. So a part has only letters, digits and a few
/// other characters, and begins with no hyphen: `ssh://-oProxyCommand=…` would be an option (CVE-2017-1000117 of git).
package struct SSHDestination: Hashable, Sendable {
    /// The user on the other machine; nil for the user of ssh's configuration.
    package let user: String?
    /// A host name, an address, or a `Host` of ssh's configuration.
    package let host: String
    /// Nil for the port of ssh's configuration.
    package let port: UInt16?
    /// The absolute path of the broker's socket; nil for the first socket that the other machine has.
    package let socket: String?

    package static let scheme = "ssh://"

    /// Parses an address that begins with `ssh://`.
    ///
    /// - Throws: `ClientError.invalidDestination`.
    package init(_ text: String) throws(ClientError) {
        func invalid(_ reason: String) -> ClientError {
            .invalidDestination(text: SanitizedText(text).text, reason: reason)
        }
        guard text.hasPrefix(Self.scheme) else { throw invalid("it does not begin with \(Self.scheme)") }
        var rest = text.dropFirst(Self.scheme.count)
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        let path = rest[slash...]
        rest = rest[..<slash]
        guard path.count <= 1 || Self.isWord(path, also: "._-+@/"), path.utf8.count <= ListenAddress.pathLimit else {
            throw invalid("its path is not that of a socket: letters, digits and ._-+@/, at most 107 bytes")
        }
        socket = path.count <= 1 ? nil : String(path)
        if let at = rest.lastIndex(of: "@") {
            let name = rest[..<at]
            guard !name.contains(":") else { throw invalid("ssh takes no password from an address") }
            guard Self.isWord(name, also: "._-+@") else { throw invalid("its user is not a user name") }
            user = String(name)
            rest = rest[rest.index(after: at)...]
        } else {
            user = nil
        }
        let isBracketed = rest.hasPrefix("[")
        let end = isBracketed ? rest.firstIndex(of: "]") : rest.firstIndex(of: ":") ?? rest.endIndex
        let name = isBracketed ? rest[..<(end ?? rest.endIndex)].dropFirst() : rest[..<(end ?? rest.endIndex)]
        guard let end, Self.isWord(name, also: isBracketed ? ":.%" : "._-") else {
            throw invalid("its host is not a host name or an address")
        }
        host = String(name)
        let suffix = rest[end...].drop { $0 == "]" }
        guard !suffix.isEmpty else {
            port = nil
            return
        }
        guard suffix.first == ":", let number = UInt16(suffix.dropFirst()), number > 0,
            suffix.dropFirst().allSatisfy(\.isNumber)
        else { throw invalid("its port is not a number from 1 to 65535") }
        port = number
    }

    /// True for ASCII letters, digits and the given characters, without a hyphen at the beginning.
    private static func isWord(_ text: Substring, also characters: String) -> Bool {
        guard let first = text.first, first != "-" else { return false }
        return text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || characters.contains($0) }
    }
}

extension SSHDestination: CustomStringConvertible {
    package var description: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return Self.scheme + (user.map { "\($0)@" } ?? "") + name + (port.map { ":\($0)" } ?? "") + (socket ?? "")
    }

    /// The user and the host, as in ssh's own messages.
    package var login: String { (user.map { "\($0)@" } ?? "") + host }

    /// The command that logs in to the same machine.
    package var command: String { "ssh " + (port.map { "-p \($0) " } ?? "") + login }
}
