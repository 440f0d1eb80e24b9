import Client
import Model

/// Tunnels that stand while this process does.
///
/// When the broker restarts they are asked for again on the addresses that they had, `tcp:0` included.
struct EphemeralTunnels {
    let client: PatchbayClient
    let errors: Console

    /// Holds them until the task is cancelled.
    ///
    /// - Parameters:
    ///   - specs: What to open.
    ///   - opened: Called once, when they listen for the first time.
    ///   - failed: Called for each connection that did not come about.
    /// - Throws: `ClientError`, or a `CLIError` when one of them cannot listen.
    func hold(
        _ specs: [TunnelSpec],
        opened: ([Tunnel]) async throws -> Void,
        failed: (TunnelConnectionFailure) async throws -> Void
    ) async throws {
        var specs = specs
        var isFirst = true
        try await RetryingStream { text in try? errors.line(text) }.keep { answered in
            try await client.holdTunnels(specs) { event in
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
            throw CLIError(
                status: .error,
                message: "\(tunnel.spec.local) cannot be listened on: \(reason)",
                remedy: "another local port, or tcp:0 for any free one"
            )
        }
    }

    /// The same request with the port that the kernel chose.
    static func fixed(_ spec: TunnelSpec, _ tunnel: Tunnel) -> TunnelSpec {
        guard case .tcp(let host, 0) = spec.local, case .tcp(_, let port)? = tunnel.bound.first else { return spec }
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

    /// Returns the attached phones that fit, as soon as there is one.
    static func wait(
        _ client: PatchbayClient,
        errors: Console,
        where fits: (Device) -> Bool
    ) async throws -> [Device] {
        do {
            try await RetryingStream { text in try? errors.line(text) }.keep { answered in
                try await client.followEvents { event in
                    answered()
                    guard case .devices(let list) = event else { return }
                    let devices = list.devices.filter(fits)
                    if !devices.isEmpty { throw Found(devices: devices) }
                }
            }
        } catch let found as Found {
            return found.devices
        }
    }
}
