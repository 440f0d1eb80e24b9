import SystemIO

/// The connections to servers that are made in advance, one for each device in use.
///
/// adb needs two requests for a stream, and the first one names the phone alone. A connection on which it was answered
/// saves the next stream to the phone a connect and a round trip. It closes when no client comes
/// (`ConnectionState.spareTime`).
struct SpareConnections {
    /// The maximum number, which holds for all devices together, because each needs a descriptor here and at the server.
    static let limit = 16

    private var handles: [ConnectLimitKey: ConnectionHandle] = [:]
    private var wanted: [ConnectPlan] = []

    /// Asks for a connection after a stream was opened by a plan.
    mutating func want(_ plan: ConnectPlan) {
        if plan.allowsSpares { wanted.append(plan) }
    }

    /// Removes and returns the next plan for which a connection has to be made.
    mutating func nextWanted() -> ConnectPlan? {
        while let plan = wanted.popLast() {
            if handles.count < Self.limit, handle(for: plan) == nil { return plan }
        }
        return nil
    }

    /// Stores a connection, which may still be in progress.
    mutating func add(_ handle: ConnectionHandle, _ plan: ConnectPlan) {
        if let key = plan.limitKey { handles[key] = handle }
    }

    /// Returns the connection to the device of a plan.
    func handle(for plan: ConnectPlan) -> ConnectionHandle? { plan.limitKey.flatMap { handles[$0] } }

    mutating func remove(_ handle: ConnectionHandle) {
        handles = handles.filter { $0.value != handle }
    }
}
