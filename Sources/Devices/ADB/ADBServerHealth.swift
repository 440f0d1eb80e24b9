import Model
import SystemIO

/// The state of the adb server and of its phones, for the status of the source.
struct ADBServerHealth: Sendable {
    /// Servers of two versions that replace each other change this often in `period`.
    private static let versionChanges = 3
    private static let period = Duration.seconds(300)

    /// The phones; nil while no server is connected.
    var phones: [Device]?
    /// The serials that several attached phones have.
    var sharedSerials: Set<UDID> = []
    /// The reason why there is no server; nil before the first attempt.
    private(set) var error: ADBError?
    /// The version of the current server, or of the last one.
    private(set) var version: Int?
    private var changes: [(from: Int, to: Int, at: ContinuousClock.Instant)] = []

    /// A server was connected.
    mutating func begin(version: Int, at now: ContinuousClock.Instant) {
        if let before = self.version, before != version { changes.append((before, version, now)) }
        changes.removeAll { $0.at.duration(to: now) > Self.period }
        self.version = version
        phones = []
        error = nil
    }

    /// The server ended, or an attempt failed. Returns true if a server was lost.
    mutating func end(_ error: ADBError) -> Bool {
        defer { self.error = error }
        return self.error == nil && version != nil
    }

    /// The versions of servers that replace each other; nil if there are none.
    var rivals: (Int, Int)? {
        guard changes.count >= Self.versionChanges, let last = changes.last else { return nil }
        return (last.from, last.to)
    }

    /// Returns the status of the source. `isRequired` is true if the configuration names the server at the address.
    /// Otherwise its absence is no problem.
    func status(of address: ServerAddress, isRequired: Bool) -> SourceStatus {
        var status = phones.map { presence(of: address, $0) } ?? absence(of: address, isRequired: isRequired)
        // Each of them also ends the other one, so there may be none at the moment.
        if let (one, two) = rivals {
            status.detail += "; servers of the versions \(one) and \(two) replace each other"
            status.hint =
                "two programs have different adb; let both use one, or set ANDROID_ADB_SERVER_PORT of one of them"
        }
        return status
    }

    private func presence(of address: ServerAddress, _ phones: [Device]) -> SourceStatus {
        let count =
            switch phones.count {
            case 0: "no phone is attached"
            case 1: "1 phone"
            default: "\(phones.count) phones"
            }
        var status = SourceStatus(
            name: "adb",
            state: .ok,
            detail: "the adb server at \(address) (version \(version ?? 0)): \(count)"
        )
        if let serial = sharedSerials.first?.serial {
            status.detail += "; two of them have the serial \(serial), so only the first one is used"
            status.hint = "unplug one of the two phones"
        }
        return status
    }

    private func absence(of address: ServerAddress, isRequired: Bool) -> SourceStatus {
        guard let error else {
            return SourceStatus(name: "adb", state: .starting, detail: "connecting to the adb server at \(address)")
        }
        guard case .absent = error else {
            return SourceStatus(
                name: "adb",
                state: .starting,
                detail: "the adb server at \(address) cannot be used: \(error)",
                hint: "`adb kill-server`, then `adb start-server`"
            )
        }
        let detail = "no adb server runs at \(address)"
        guard isRequired else {
            return SourceStatus(name: "adb", state: .off, detail: "\(detail); `adb start-server` starts one")
        }
        return SourceStatus(name: "adb", state: .missing, detail: detail, hint: "`adb start-server`")
    }
}
