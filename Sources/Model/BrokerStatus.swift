package import FoundationEssentials

/// The state of the broker, as `patchbay status` and `patchbay doctor` show it.
///
/// The holder of a grant receives only the parts that concern its own endpoints and tunnels.
package struct BrokerStatus: Hashable, Sendable, Codable {
    package var version: String
    /// The process ID of the broker. Nil unless the client is an owner.
    package var pid: Int32?
    package var startedAt: Date
    /// The current revision of the registry.
    package var revision: UInt64
    package var endpoints: [String: Int]
    package var devices: Int
    package var tunnels: Int
    /// The number of open streams. Nil if there are none, or unless the client is an owner.
    package var streams: Int?
    /// The number of leases. Nil if there are none.
    package var leases: Int?
    package var sources: [SourceStatus]
    /// Problems in the stored access state, as sentences. Nil if there are none.
    package var findings: [String]?
    /// Files in the state directory that cannot be written, as sentences. Nil if all can be written.
    package var storage: [String]?
    /// True if every user may connect to the unix socket; other users than owners then need a grant. Nil otherwise.
    package var allowAnyUser: Bool?
    /// The remote listener. Nil unless the client is an owner.
    package var remote: RemoteStatus?
    /// The name of this host in its team. Nil without a team.
    package var host: HostName?
    /// The other hosts of the team. Nil without a team.
    package var hosts: [HostStatus]?

    package init(
        version: String,
        pid: Int32?,
        startedAt: Date,
        revision: UInt64,
        endpoints: [String: Int],
        devices: Int,
        tunnels: Int,
        streams: Int? = nil,
        sources: [SourceStatus],
        findings: [String]? = nil,
        storage: [String]? = nil,
        allowAnyUser: Bool? = nil,
        remote: RemoteStatus? = nil,
        host: HostName? = nil,
        hosts: [HostStatus]? = nil
    ) {
        self.version = version
        self.pid = pid
        self.startedAt = startedAt
        self.revision = revision
        self.endpoints = endpoints
        self.devices = devices
        self.tunnels = tunnels
        self.streams = streams
        self.sources = sources
        self.findings = findings
        self.storage = storage
        self.allowAnyUser = allowAnyUser
        self.remote = remote
        self.host = host
        self.hosts = hosts
    }
}

/// The state of one source, with a hint if something is wrong.
package struct SourceStatus: Hashable, Sendable, Codable {
    package enum State: String, Hashable, Sendable, Codable {
        case ok
        /// Connecting, or restarting after an error.
        case starting
        /// A dependency is missing. The source starts when the dependency appears.
        case missing
        /// Disabled in the configuration.
        case off
    }

    /// `bonjour`, `usbmuxd`, `adb`, `debuglink` or `usbmux-server`; `list` reports endpoints that exceed a limit, `team` a
    /// problem of the team, and `api` an address that another program has.
    package let name: String
    package var state: State
    /// A sentence that says what the source reports or what is wrong.
    package var detail: String
    /// The command or action that fixes the problem. A source in state `ok` has a hint if it works only in part.
    package var hint: String?

    package init(name: String, state: State, detail: String, hint: String? = nil) {
        self.name = name
        self.state = state
        self.detail = detail
        self.hint = hint
    }
}

/// The version of Patchbay. The broker and the command line always have the same version.
package enum Version {
    package static let text = "0.1.0"

    /// Returns the text of `--version`: the version, and the commit if the build has one.
    package static func text(commit: String) -> String { commit.isEmpty ? text : "\(text) (\(commit))" }
}
