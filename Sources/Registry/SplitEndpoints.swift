import FoundationEssentials
import Model

/// The endpoints that may be relaunches of older endpoints whose last server was still listed.
///
/// A relaunched app may be seen on its new port before the end of its last launch is known. It is then listed as a new
/// endpoint. If the older server turns out to have ended before it was seen alive again, both are one endpoint.
struct SplitEndpoints: Sendable {
    private struct Split: Sendable {
        let newer: EndpointID
        let since: Date
    }

    /// The time in seconds within which the end of an advertisement proves a relaunch. It is the TTL of 120 s (RFC
    /// 6762, section 10) and a little more. The end of an older advertisement may be a quit at any time.
    static let advertisementPeriod: Double = 125

    private var splits: [EndpointID: [Split]] = [:]

    /// Records that a new endpoint may be a relaunch of an older one.
    mutating func insert(_ newer: EndpointID, of older: EndpointID, at now: Date) {
        splits[older, default: []].append(Split(newer: newer, since: now))
    }

    /// Returns the older endpoint of which an endpoint may be a relaunch.
    func older(than newer: EndpointID) -> EndpointID? {
        splits.first { $0.value.contains { $0.newer == newer } }?.key
    }

    /// Records that the server of an older endpoint runs. The newer ones are therefore other instances.
    mutating func separate(_ older: EndpointID) { splits[older] = nil }

    /// Removes and returns the newest relaunch of an endpoint whose server has ended.
    ///
    /// - Parameters:
    ///   - older: The endpoint.
    ///   - period: The maximum age of the newer endpoint in seconds; nil for any age.
    ///   - now: The current time.
    /// - Returns: The newer endpoint; nil if there is none.
    mutating func takeRelaunch(of older: EndpointID, within period: Double? = nil, at now: Date) -> EndpointID? {
        guard let last = splits.removeValue(forKey: older)?.last else { return nil }
        if let period, now.timeIntervalSince(last.since) > period { return nil }
        return last.newer
    }
}
