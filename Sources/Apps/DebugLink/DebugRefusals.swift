package import SystemIO

/// The clients that the state debugger disconnected before their first message.
package struct DebugRefusals: Hashable, Sendable {
    /// The maximum number of remembered machines. Above it, all are forgotten and reported again.
    private static let machineLimit = 64
    /// The maximum number of reported reasons of a machine. Garbage can cause any number.
    private static let reasonLimit = 8

    /// The number of refused clients since the start of the broker.
    package private(set) var count = 0
    /// The address of the last refused client; nil if there is none.
    package private(set) var lastPeer: SocketAddress?
    /// The reason for the last refusal; nil if there is none.
    package private(set) var lastReason: String?
    private var reported: [String: Set<String>] = [:]

    package init() {}

    /// Counts a refusal.
    ///
    /// - Returns: True if it is to be reported: the first one of this machine with this reason.
    @discardableResult package mutating func add(_ peer: SocketAddress, because reason: String) -> Bool {
        count += 1
        (lastPeer, lastReason) = (peer, reason)
        if reported[peer.host] == nil, reported.count >= Self.machineLimit { reported = [:] }
        guard reported[peer.host, default: []].count < Self.reasonLimit else { return false }
        return reported[peer.host, default: []].insert(reason).inserted
    }
}

/// The end of a connection to the state debugger.
enum DebugConnectionEnd: Hashable, Sendable {
    /// The client sent nothing.
    case unused
    /// The client sent no message of an app; with the reason.
    case refusal(String)
    /// The client was refused before with the same reason.
    case repeatedRefusal
    /// An app disconnected; with the reason, or nil after a normal end.
    case disconnect(String?)
}
