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

    package var connectTimeout: Duration { client.connectTimeout }
    package var connectionLimit: FairLimiter<UDID> { client.connectionLimit }

    package func method(for route: USBRoute, to handle: DeviceMonitor.Handle) -> ConnectPlan.Method {
        let method = client.method(for: route, to: handle)
        guard case .socket(let address, let handshake?) = method else { return method }
        let counting = ConnectPlan.Method.socket(
            address,
            ConnectPlan.Handshake(requests: handshake.requests, evaluate: handshake.evaluate) { [self] number in
                state.withLock { ($0.connected, $0.lastDeviceID) = ($0.connected + 1, handle.deviceID) }
                return handshake.verify(number)
            }
        )
        return .task { [self] in
            let interruption = state.withLock { state in
                defer { state.interruption = nil }
                return state.interruption
            }
            try await interruption?()
            return try await dial(.usb(route), by: counting)
        }
    }

    /// Opens a stream. Throws `ConnectPlan.AttemptFailure`, so that the plan of the stream recovers.
    private func dial(_ route: Route, by method: ConnectPlan.Method) async throws -> Connection {
        let failure = Mutex<ConnectPlan.AttemptFailure?>(nil)
        let plan = ConnectPlan(
            route: route,
            method: method,
            halfClose: .destroys,
            timeout: connectTimeout,
            recover: { reason, _ throws(DialError) in
                failure.withLock { $0 = reason }
                throw DialError(.failed, "the connect failed: \(reason)")
            }
        )
        do {
            return try await FixedPlanner(plan).dial(route)
        } catch {
            if let failure = failure.withLock({ $0 }) { throw failure }
            throw error
        }
    }
}
