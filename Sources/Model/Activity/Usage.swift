package import FoundationEssentials

/// The use of phones and grants over the last 24 hours: the response to `GET /v1/usage`.
package struct Usage: Hashable, Sendable, Codable {
    /// The calls of apps' tools, and those of them that ended without success.
    package struct Counts: Hashable, Sendable {
        package var calls = 0
        package var failures = 0

        package init(calls: Int = 0, failures: Int = 0) { (self.calls, self.failures) = (calls, failures) }
    }

    package struct Device: Hashable, Sendable, Codable {
        package let udid: UDID
        /// Nil for a phone that reported no name, or that is not attached now.
        package let name: SanitizedText?
        package let leasedSeconds: Int
        package let calls: Int
        package let failures: Int

        package init(_ udid: UDID, name: SanitizedText?, leasedSeconds: Int, _ counts: Counts) {
            self.udid = udid
            self.name = name
            self.leasedSeconds = leasedSeconds
            (calls, failures) = (counts.calls, counts.failures)
        }
    }

    package struct Grant: Hashable, Sendable, Codable {
        package let id: String
        package let name: SanitizedText?
        package let leasedSeconds: Int
        package let calls: Int
        package let failures: Int

        package init(_ id: String, name: SanitizedText?, leasedSeconds: Int, _ counts: Counts) {
            self.id = id
            self.name = name
            self.leasedSeconds = leasedSeconds
            (calls, failures) = (counts.calls, counts.failures)
        }
    }

    package struct Hour: Hashable, Sendable, Codable {
        /// The beginning of the hour.
        package let at: Date
        package let calls: Int
        package let failures: Int

        package init(at: Date, _ counts: Counts) {
            self.at = at
            (calls, failures) = (counts.calls, counts.failures)
        }
    }

    package let schema: Int
    /// The beginning of the first hour, or the start of the broker if that is later.
    package let since: Date
    package let devices: [Device]
    package let grants: [Grant]
    /// Every hour since then, oldest first.
    package let hours: [Hour]

    package init(since: Date, devices: [Device], grants: [Grant], hours: [Hour]) {
        schema = 1
        self.since = since
        self.devices = devices
        self.grants = grants
        self.hours = hours
    }
}
