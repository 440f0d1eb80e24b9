package import Model

/// Says by which routes a tunnel's target is reached now.
package protocol RouteResolver: Sendable {
    /// The best first. Asked anew for each connection, so that a tunnel follows an app that moves.
    ///
    /// - Throws: `DialError` (`noRoute`, `deviceAbsent`, `usbmuxdAbsent`) when there is none.
    func routes(to target: TunnelTarget) async throws(DialError) -> [Route]
}
