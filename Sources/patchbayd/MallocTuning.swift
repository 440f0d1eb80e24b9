import CLinux
import ServiceLifecycle

/// The settings of malloc(3).
enum MallocTuning {
    /// Limits what malloc(3) keeps. Called before other threads start.
    static func apply() {
        // Freed memory of one malloc arena is not available to other threads. About a dozen threads exist, two of them
        // busy.
        CLinux_limit_heaps(2)
        // Blocks from 1 MiB on, such as screenshots, are mapped and returned to the system when freed.
        CLinux_map_blocks(1 << 20)
    }
}

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
