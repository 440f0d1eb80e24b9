package import Devices
package import Model
import Synchronization
package import SystemIO

/// A client that runs an action right before its first Connect.
package final class InterruptedUsbmuxClient: UsbmuxClient {
    private struct State {
        var connected = 0
        var lastDeviceID: UInt32 = 0
        var interruption: (@Sendable () async throws -> Void)?
    }

    private let client: any UsbmuxClient
    private let state: Mutex<State>

    package init(_ client: any UsbmuxClient, _ interruption: @escaping @Sendable () async throws -> Void) {
        self.client = client
        state = Mutex(State(interruption: interruption))
    }

    /// The number of Connects that usbmuxd accepted.
    package var connected: Int { state.withLock { $0.connected } }
    /// The DeviceID of the last of them.
    package var lastDeviceID: UInt32 { state.withLock { $0.lastDeviceID } }

    package func listDevices() async throws -> [UsbmuxDeviceRecord] { try await client.listDevices() }
    package func readBUID() async throws -> String { try await client.readBUID() }

    package var connectionLimit: UsbmuxConnectionLimiter { client.connectionLimit }

    package func plan(for route: USBRoute, to handle: DeviceMonitor.Handle, recover: @escaping ConnectPlan.Recovery)
        -> ConnectPlan
    {
        let plan = client.plan(for: route, to: handle, recover: recover)
        guard case .socket(let address, let handshake?) = plan.method else { return plan }
        let counting = ConnectPlan(
            route: plan.route,
            method: .socket(
                address,
                ConnectPlan.Handshake(request: handshake.request, evaluate: handshake.evaluate) { [self] number in
                    state.withLock { ($0.connected, $0.lastDeviceID) = ($0.connected + 1, handle.deviceID) }
                    return handshake.verify(number)
                }
            ),
            halfClose: plan.halfClose,
            timeout: plan.timeout,
            recover: recover
        )
        return ConnectPlan(route: plan.route) { [self] in
            let interruption = state.withLock { state in
                defer { state.interruption = nil }
                return state.interruption
            }
            try await interruption?()
            return try await FixedPlanner(counting).dial(.usb(route))
        }
    }
}
