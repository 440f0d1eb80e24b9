import CLinux
import ServiceLifecycle

/// Unmaps the program's code once after the start. The code in use comes back from the page cache.
struct StartupCodeReleaser: Service {
    /// The time for the first connections to Avahi and usbmuxd, which run much code for the first time.
    private static let delay = Duration.seconds(5)

    func run() async throws {
        try? await cancelWhenGracefulShutdown { try await ContinuousClock().sleep(for: Self.delay) }
        CLinux_release_code()
        // A service that returns would end the broker.
        try await gracefulShutdown()
    }
}
