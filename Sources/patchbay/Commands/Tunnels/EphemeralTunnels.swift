import Client
import Model

/// Tunnels that exist while this process runs.
///
/// When the broker restarts, the tunnels are reopened on the same addresses, also those with `tcp:0`. A broker on another
/// machine does not listen for this process: `LocalTunnels`.
struct EphemeralTunnels {
    let client: PatchbayClient
    let errors: Console

    /// Opens the tunnels and keeps them open until the task is cancelled.
    ///
    /// - Parameters:
    ///   - specs: The tunnels to open.
    ///   - opened: Called once, when all tunnels listen for the first time.
    ///   - failed: Called for each failed connection.
    /// - Throws: `ClientError`, or `CLIError` if a tunnel cannot listen.
    func run(
        _ specs: [TunnelSpec],
        opened: ([Tunnel]) async throws -> Void,
        failed: (TunnelConnectionFailure) async throws -> Void
    ) async throws {
        if client.address.isOnAnotherMachine {
            return try await LocalTunnels(client: client).run(specs, opened: opened, failed: failed)
        }
        var specs = specs
        var isFirst = true
        try await RetryingStream { text in try? errors.line(text) }.run { answered in
            try await client.tunnels.openEphemeral(specs) { event in
                switch event {
                case .opened(let tunnels):
                    try Self.check(tunnels)
                    answered()
                    specs = zip(specs, tunnels).map { Self.fixed($0, $1) }
                    if isFirst { try await opened(tunnels) }
                    isFirst = false
                case .failure(let failure): try await failed(failure)
                }
            }
        }
    }

    private static func check(_ tunnels: [Tunnel]) throws(CLIError) {
        for tunnel in tunnels {
            guard case .failed(let reason) = tunnel.state else { continue }
            throw CLIError.failed(
                "cannot listen on \(tunnel.spec.local): \(reason)",
                try: "use another local port, or tcp:0 for a free port"
            )
        }
    }

    /// Returns the spec with the port that the kernel selected.
    static func fixed(_ spec: TunnelSpec, _ tunnel: Tunnel) -> TunnelSpec {
        guard case .tcp(let host, 0) = spec.local, case .tcp(_, let port)? = tunnel.listenAddresses.first else {
            return spec
        }
        var fixed = spec
        fixed.local = .tcp(host: host, port: port)
        return fixed
    }
}

/// Waits for a phone to be plugged in.
enum DeviceWaiter {
    private struct Found: Error {
        let devices: [Device]
    }

    /// Waits until at least one attached phone matches and returns the matching phones.
    static func wait(
        _ client: PatchbayClient,
        errors: Console,
        where fits: (Device) -> Bool
    ) async throws -> [Device] {
        do {
            try await RetryingStream { text in try? errors.line(text) }.run { answered in
                try await client.streamEvents { event in
                    answered()
                    guard case .devices(let attached) = event else { return }
                    let devices = attached.filter(fits)
                    if !devices.isEmpty { throw Found(devices: devices) }
                }
            }
        } catch let found as Found {
            return found.devices
        }
    }
}
