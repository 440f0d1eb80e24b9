/// Whoever wants to know what becomes of relayed connections: a tunnel's statistics, later a grant's.
///
/// Connections that share an observer are one group, which `Relay.cut(_:)` ends together. Both methods are called on
/// the relay's thread, which carries every connection, so they return at once.
package protocol RelayObserver: AnyObject, Sendable {
    /// So many bytes were handed on to the target, and to the client, since the last call.
    func relayed(up: Int, down: Int)

    /// The connection is over and both of its descriptors are closed. Called exactly once for each adopted connection.
    func ended(_ outcome: RelayOutcome)
}
