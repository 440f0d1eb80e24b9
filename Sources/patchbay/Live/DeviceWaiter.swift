import Client
import Model

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
