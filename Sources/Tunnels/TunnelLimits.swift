/// The limits of a tunnel table.
package struct TunnelLimits: Hashable, Sendable {
    /// Open connections through all tunnels together. The next client is reset and counted as `limit`.
    package let connections: Int
    /// Concurrent dials per listening socket. Further clients wait in the kernel's accept queue and are served in
    /// order.
    package let concurrentDials: Int
    /// Open tunnels.
    package let tunnels: Int
    /// The interval between attempts to listen on a local address that was in use.
    package let listenRetryInterval: Duration
    /// The delay before the next accept if the process is out of descriptors.
    package let acceptBackoff: Duration
    /// The longest delay before the next attempt to accept on a failing listening socket.
    package let maxAcceptBackoff: Duration
    package let inspection: InspectionTimeouts
    /// The rules for unix sockets.
    package let sockets: UnixSocketReachability

    package init(
        connections: Int = 2_000,
        concurrentDials: Int = 128,
        tunnels: Int = 1_024,
        listenRetryInterval: Duration = .seconds(2),
        acceptBackoff: Duration = .milliseconds(100),
        maxAcceptBackoff: Duration = .seconds(10),
        inspection: InspectionTimeouts = InspectionTimeouts(),
        sockets: UnixSocketReachability = UnixSocketReachability()
    ) {
        self.connections = connections
        self.concurrentDials = concurrentDials
        self.tunnels = tunnels
        self.listenRetryInterval = listenRetryInterval
        self.acceptBackoff = acceptBackoff
        self.maxAcceptBackoff = maxAcceptBackoff
        self.inspection = inspection
        self.sockets = sockets
    }
}

/// The timeouts for the inspection of a client's first bytes.
package struct InspectionTimeouts: Hashable, Sendable {
    /// For the first byte, before the target is dialed. Clients of servers that speak first send nothing.
    package let firstByte: Duration
    /// For the rest of a word that begins like a common HTTP method.
    package let method: Duration
    /// For the complete head of an HTTP request, from its first byte.
    package let head: Duration
    /// For a rejected client to read the response and close.
    package let drain: Duration

    package init(
        firstByte: Duration = .milliseconds(20),
        method: Duration = .milliseconds(250),
        head: Duration = .seconds(5),
        drain: Duration = .milliseconds(500)
    ) {
        self.firstByte = firstByte
        self.method = method
        self.head = head
        self.drain = drain
    }

    /// The maximum silence at a stage. Browsers send a request line at once. An arbitrary word gets no time, because it
    /// would delay every connection of other protocols.
    func timeout(at stage: RequestLineStage) -> Duration {
        switch stage {
        case .silent: firstByte
        case .possible: .zero
        case .likely: method
        case .begun: head
        }
    }
}
