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
