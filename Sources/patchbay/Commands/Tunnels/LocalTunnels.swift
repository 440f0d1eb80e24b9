import Client
import Model
import SystemIO
import Tunnels

/// Tunnels of this process to targets of a broker on another machine.
///
/// The local addresses are on this machine, with the same protections as in the broker. Each connection is a stream of
/// its own, so a restart of the broker ends only the open ones.
struct LocalTunnels {
    let client: PatchbayClient

    /// Opens the tunnels, all or none, and keeps them open until the task is cancelled or the grant ends.
    ///
    /// - Parameters:
    ///   - specs: The tunnels to open.
    ///   - opened: Called once, when all tunnels listen.
    ///   - failed: Called for each failed connection.
    /// - Throws: `ClientError.refused` if the broker allows no stream to a target, or if a tunnel cannot listen;
    ///   `CLIError` when the grant ends; `CancellationError`.
    func run(
        _ specs: [TunnelSpec],
        opened: ([Tunnel]) async throws -> Void,
        failed: (TunnelConnectionFailure) async throws -> Void
    ) async throws {
        for target in Set(specs.map(\.target)) { try await client.streams.check(to: target) }
        do {
            let table = try await TunnelTable(planner: StreamPlanner(client: client))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await run(table) }
                let events = await table.events()
                try await opened(try await table.createEphemeral(specs))
                for await event in events {
                    guard case .connectionFailed(let tunnel, let failure) = event else { continue }
                    try await failed(
                        TunnelConnectionFailure(tunnel: tunnel, reason: failure.reason, detail: failure.description)
                    )
                }
                try await group.waitForAll()
            }
            try Task.checkCancellation()
        } catch let error as TunnelError {
            throw ClientError.refused(error.problem)
        }
    }

    /// Runs the tunnels until the task is cancelled or the grant ends.
    private func run(_ table: TunnelTable) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await table.run() }
            // Through ssh there is no grant.
            if case .remote = client.address { group.addTask { try await waitForEndOfGrant() } }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Waits until the broker ends its events for this client and refuses to send more.
    private func waitForEndOfGrant() async throws {
        do {
            try await RetryingStream { _ in }.run { answered in
                try await client.streamEvents { _ in answered() }
            }
        } catch ClientError.refused(let problem) where problem.code == .unauthorized {
            throw CLIError.notPermitted(
                "the grant was revoked or has expired, so the tunnels are closed: \(problem.detail)",
                try: problem.hint
            )
        }
    }
}

/// Opens a stream through the broker for each connection.
struct StreamPlanner: TargetPlanner {
    let client: PatchbayClient

    /// The broker resets a stream when the app does, and when the grant or an approval ends.
    var failureSentence: String { "the broker or the app closed the connection" }

    func snapshot(of target: TunnelTarget, for owner: TunnelOwner) async throws(DialError) -> TargetSnapshot {
        try await check(target)
        return TargetSnapshot([ConnectPlan(route: nil) { try await open(target) }])
    }

    private func open(_ target: TunnelTarget) async throws -> Connection {
        do { return try await client.streams.open(to: target) } catch let error as ClientError {
            throw DialError(error)
        }
    }

    private func check(_ target: TunnelTarget) async throws(DialError) {
        do {
            switch target {
            case .endpoint(let id):
                guard try await client.endpoint(id).routes.isEmpty else { return }
                throw DialError(.noRoute, "\(id) has no route now; start the app, or run `patchbay show \(id)`")
            case .device(let route):
                guard try await !client.devices().contains(where: { $0.udid == route.udid && $0.isReady }) else {
                    return
                }
                throw DialError(
                    .deviceAbsent,
                    "\(route.udid) is not attached to the broker's machine; plug it in there"
                )
            }
        } catch let failure as DialError {
            throw failure
        } catch ClientError.refused(let problem) where problem.code == .forbidden {
            // The grant may lack the permission to read the lists. The broker checks each stream.
        } catch let error as ClientError {
            throw DialError(error)
        } catch {
            throw DialError(.failed, "the target could not be checked: \(error)")
        }
    }
}
