package import FoundationEssentials

/// How the broker is: what `patchbay status` shows and `doctor` starts from. Who holds a grant is told what of it is its own.
package struct BrokerStatus: Hashable, Sendable, Codable {
    package var version: String
    /// For owners.
    package var pid: Int32?
    package var since: Date
    /// The registry's revision, and how many endpoints stand in it by state.
    package var revision: UInt64
    package var endpoints: [String: Int]
    package var devices: Int
    package var tunnels: Int
    package var sources: [SourceStatus]
    /// What was found wrong with what pairing keeps, as sentences; nil when nothing was.
    package var findings: [String]?
    /// Which files of the state folder cannot be written, as sentences; nil when all can.
    package var storage: [String]?
    /// Whether the unix socket is meant for every user, who then need a grant; nil where it is not.
    package var anyUser: Bool?

    package init(
        version: String,
        pid: Int32?,
        since: Date,
        revision: UInt64,
        endpoints: [String: Int],
        devices: Int,
        tunnels: Int,
        sources: [SourceStatus],
        findings: [String]? = nil,
        storage: [String]? = nil,
        anyUser: Bool? = nil
    ) {
        self.version = version
        self.pid = pid
        self.since = since
        self.revision = revision
        self.endpoints = endpoints
        self.devices = devices
        self.tunnels = tunnels
        self.sources = sources
        self.findings = findings
        self.storage = storage
        self.anyUser = anyUser
    }
}

/// How one source is, with what a person can do about it.
package struct SourceStatus: Hashable, Sendable, Codable {
    package enum State: String, Hashable, Sendable, Codable {
        case ok
        /// On its way: connecting, or restarting after a fault.
        case starting
        /// What it needs is not there; it is picked up when it appears.
        case missing
        /// Turned off in the configuration.
        case off
    }

    /// `bonjour`, `usb`, `facade`; `list` when a limit keeps something off the list.
    package let name: String
    package var state: State
    /// A sentence: what it sees, or what is wrong.
    package var detail: String
    /// What to type or do, when something is wrong. A source that is `ok` has one when it works in part.
    package var remedy: String?

    package init(name: String, state: State, detail: String, remedy: String? = nil) {
        self.name = name
        self.state = state
        self.detail = detail
        self.remedy = remedy
    }
}

/// Which Patchbay this is; the daemon and the command line are always built together.
package enum Version {
    package static let text = "0.1.0"
}
