package import Logging
package import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// Follows the apps of the Android phones that can be reached, and reports the ports of each phone.
package final class PhoneAppMonitor: Service {
    /// The following of one attachment of a phone.
    private struct Followed: Sendable {
        let follower: PhoneAppFollower
        let end = AsyncLatch()
    }

    private let monitor: ADBDeviceMonitor
    private let logger: Logger
    private let report: @Sendable ([PhonePort], UDID) -> Void
    private let followed = Mutex<[ADBReachablePhone: Followed]>([:])

    /// - Parameters:
    ///   - monitor: Knows the phones, and opens their services.
    ///   - logger: The logger.
    ///   - report: Called with all ports of a phone after each change, and with none when the phone has left.
    package init(
        of monitor: ADBDeviceMonitor,
        logger: Logger,
        report: @escaping @Sendable ([PhonePort], UDID) -> Void
    ) {
        (self.monitor, self.logger, self.report) = (monitor, logger, report)
    }

    /// Follows phones until graceful shutdown or cancellation. Each phone has tasks of its own.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                for await phones in await monitor.reachablePhones() {
                    for phone in update(phones) { group.addTask { [self] in await follow(phone) } }
                }
                group.cancelAll()
            }
        }
    }

    /// Ends the following of phones that have left. Returns the new ones.
    private func update(_ phones: Set<ADBReachablePhone>) -> [ADBReachablePhone] {
        followed.withLock { followed in
            for (phone, one) in followed where !phones.contains(phone) {
                one.end.open()
                followed[phone] = nil
                // The phone reports again on its other attachment.
                if !phones.contains(where: { $0.udid == phone.udid }) { report([], phone.udid) }
            }
            let new = phones.filter { followed[$0] == nil }
            for phone in new {
                let follower = PhoneAppFollower(
                    open: { [monitor] in try await monitor.open($0, of: phone.udid) },
                    logger: logger,
                    report: { [weak self] in self?.report($0, by: phone) }
                )
                followed[phone] = Followed(follower: follower)
            }
            return Array(new)
        }
    }

    /// Reports the ports of an attachment, unless it has ended.
    private func report(_ ports: [PhonePort], by phone: ADBReachablePhone) {
        followed.withLock { if $0[phone] != nil { report(ports, phone.udid) } }
    }

    private func follow(_ phone: ADBReachablePhone) async {
        guard let one = followed.withLock({ $0[phone] }) else { return }
        await withDiscardingTaskGroup { group in
            group.addTask { await one.follower.run() }
            await withTaskCancellationHandler {
                await one.end.wait()
            } onCancel: {
                one.end.open()
            }
            group.cancelAll()
        }
    }

    /// Returns whether the app that is behind a port of a phone is the one that wrote the line about it.
    package func isOwner(of port: PhonePort, on udid: UDID) async -> Bool {
        let one = followed.withLock { followed in followed.first { $0.key.udid == udid }?.value }
        return await one?.follower.isOwner(of: port) ?? false
    }
}
