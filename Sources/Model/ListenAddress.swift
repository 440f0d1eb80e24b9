/// The local address of a tunnel, written `tcp:PORT`, `tcp:HOST:PORT`, `tcp:[V6]:PORT` or `unix:/path`.
package enum ListenAddress: Hashable, Sendable {
    /// A nil host means 127.0.0.1 and ::1 on the same port. Port 0 lets the kernel choose the port.
    case tcp(host: String?, port: UInt16)
    /// An absolute path. The socket is created with mode 0600.
    case unix(path: String)

    /// `sun_path` of sockaddr_un holds 108 bytes including the final zero (unix(7)).
    package static let pathLimit = 107

    /// Parses the notation above, and `8080` and `127.0.0.1:8080` as TCP. Returns nil for other text.
    ///
    /// Rejects characters that need escaping, because tables and other programs receive the address.
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

/// The path of the broker's unix socket. The broker and its clients use the same rules.
package enum BrokerSocketPath {
    /// The path of a system-wide broker.
    package static let system = "/run/patchbay/patchbay.sock"
    /// The places of the service's unit file: of the package, of `make install`, and of an administrator.
    package static let serviceUnits = ["/lib", "/usr/local/lib", "/etc"].map {
        "\($0)/systemd/system/patchbayd.service"
    }
    /// The environment variable that sets the socket path for the broker and its clients.
    package static let variable = "PATCHBAY_SOCKET"

    /// Returns the path to which a client connects.
    ///
    /// The order is: the explicit path, `$PATCHBAY_SOCKET`, the system-wide broker if its socket exists, the user's own
    /// broker. Where neither socket exists and the service is installed, the service is the one that does not run.
    ///
    /// - Parameters:
    ///   - explicit: The value of `--socket`.
    ///   - environment: The environment of the process.
    ///   - userID: The effective user ID.
    ///   - exists: Returns whether a file exists at a path.
    /// - Returns: A path. Only connect(2) shows whether a broker listens there.
    package static func find(
        explicit: String? = nil,
        environment: [String: String],
        userID: UInt32,
        exists: (String) -> Bool
    ) -> String {
        if let path = explicitPath(explicit, environment) { return path }
        if exists(system) { return system }
        let path = userPath(environment: environment, userID: userID)
        return !exists(path) && serviceUnits.contains(where: exists) ? system : path
    }

    /// Returns the path on which a daemon listens.
    ///
    /// The order is: the explicit path, `$PATCHBAY_SOCKET`, systemd's `RuntimeDirectory=`. Otherwise root uses the
    /// system-wide path and other users their own path.
    package static func listen(
        explicit: String? = nil,
        environment: [String: String],
        userID: UInt32
    ) -> String {
        if let path = explicitPath(explicit, environment) { return path }
        // systemd.exec(5): paths separated by colons, which systemd sorts. The folder of grants has no other sockets.
        let folders = value("RUNTIME_DIRECTORY", environment)?.split(separator: ":") ?? []
        if let folder = folders.first(where: { !$0.hasSuffix("/grants") }) {
            return "\(folder)/patchbay.sock"
        }
        return userPath(environment: environment, userID: userID)
    }

    private static func userPath(environment: [String: String], userID: UInt32) -> String {
        if userID == 0 { return system }
        let folder = value("XDG_RUNTIME_DIR", environment) ?? "/run/user/\(userID)"
        return "\(folder)/patchbay/patchbay.sock"
    }

    private static func explicitPath(_ explicit: String?, _ environment: [String: String]) -> String? {
        explicit ?? value(variable, environment)
    }

    /// Returns the value of a variable. An empty variable counts as unset.
    private static func value(_ name: String, _ environment: [String: String]) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
