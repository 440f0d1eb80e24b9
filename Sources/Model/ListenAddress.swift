/// Where a tunnel listens, written `tcp:PORT`, `tcp:HOST:PORT`, `tcp:[V6]:PORT` or `unix:/path`.
package enum ListenAddress: Hashable, Sendable {
    /// A nil host is both 127.0.0.1 and ::1, on one port; port 0 lets the kernel choose.
    case tcp(host: String?, port: UInt16)
    /// An absolute path; the socket is made with mode 0600.
    case unix(path: String)

    /// `sun_path` of sockaddr_un holds 108 bytes with the final zero (unix(7)).
    package static let pathLimit = 107

    /// Reads the notation above; `8080` and `127.0.0.1:8080` alone are TCP too. Nil when it is none of them.
    ///
    /// Plain text only: the address is shown in tables and given to other programs, and nobody needs an escape in a path.
    package init?(_ text: some StringProtocol) {
        guard SanitizedText(text, limit: .max).text == text else { return nil }
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard path.hasPrefix("/"), path.utf8.count <= Self.pathLimit else { return nil }
            self = .unix(path: path)
            return
        }
        let rest = text.hasPrefix("tcp:") ? text.dropFirst(4)[...] : text[...]
        guard let colon = rest.lastIndex(of: ":") else {
            guard let port = UInt16(rest) else { return nil }
            self = .tcp(host: nil, port: port)
            return
        }
        var host = rest[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty, let port = UInt16(rest[rest.index(after: colon)...]) else { return nil }
        self = .tcp(host: String(host), port: port)
    }
}

extension ListenAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tcp(nil, let port): "tcp:\(port)"
        case .tcp(let host?, let port): host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

extension ListenAddress: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let address = ListenAddress(text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription:
                    "\"\(SanitizedText(text, limit: 200))\" is not a local address; write PORT, tcp:HOST:PORT or unix:/path"
            )
        }
        self = address
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

/// Where the broker's unix socket is: one rule for the daemon that makes it and for the clients that look for it.
package enum BrokerSocketPath {
    /// Where a broker that runs for the whole machine listens.
    package static let system = "/run/patchbay/patchbay.sock"
    /// The variable that names the socket, for both sides.
    package static let variable = "PATCHBAY_SOCKET"

    /// Where a client connects: what was said, else `$PATCHBAY_SOCKET`, else the machine's broker if it has one, else
    /// the user's own.
    ///
    /// - Parameters:
    ///   - explicit: What `--socket` says.
    ///   - environment: The process's environment.
    ///   - userID: The effective user.
    ///   - exists: Whether there is a file at a path.
    /// - Returns: A path; whether anybody listens there is for connect(2) to say.
    package static func find(
        explicit: String? = nil,
        environment: [String: String],
        userID: UInt32,
        exists: (String) -> Bool
    ) -> String {
        if let told = told(explicit, environment) { return told }
        return exists(system) ? system : own(environment: environment, userID: userID)
    }

    /// Where a daemon listens: what was said, else `$PATCHBAY_SOCKET`, else in systemd's `RuntimeDirectory=`, else the
    /// machine's place for root and the user's own for everybody else.
    package static func listen(
        explicit: String? = nil,
        environment: [String: String],
        userID: UInt32
    ) -> String {
        if let told = told(explicit, environment) { return told }
        // systemd.exec(5): a list separated by colons, in the order of the unit file.
        if let folder = value("RUNTIME_DIRECTORY", environment)?.split(separator: ":").first {
            return "\(folder)/patchbay.sock"
        }
        return own(environment: environment, userID: userID)
    }

    private static func own(environment: [String: String], userID: UInt32) -> String {
        if userID == 0 { return system }
        let folder = value("XDG_RUNTIME_DIR", environment) ?? "/run/user/\(userID)"
        return "\(folder)/patchbay/patchbay.sock"
    }

    private static func told(_ explicit: String?, _ environment: [String: String]) -> String? {
        explicit ?? value(variable, environment)
    }

    /// An empty variable counts as unset.
    private static func value(_ name: String, _ environment: [String: String]) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
