import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite struct UsbmuxdBackoffTests {
    @Test func `the pauses while the accept queue is full are 1 ms to 50 ms`() {
        var backoff = Backoff.queueFull
        let pauses = (1...8).map { _ in backoff.next() }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 50, 50].map { Duration.milliseconds($0) })
    }

    @Test func `a pause without a watched directory sleeps for a second at most`() async {
        let longest = await longestPause(with: nil)
        #expect(longest > .milliseconds(900) && longest <= .seconds(1))
    }

    @Test func `a pause with a watched directory sleeps for ten seconds at most`() async throws {
        let longest = try await withScratchFolder { scratch in
            let watcher = DirectoryWatcher(path: scratch.file("usbmuxd"))
            #expect(watcher.arm() == false)
            return await longestPause(with: watcher)
        }
        #expect(longest > .seconds(9) && longest <= .seconds(10))
    }

    @Test func `a missing directory is not watched`() {
        #expect(DirectoryWatcher(path: "/does/not/exist/usbmuxd").arm() == nil)
    }

    private func longestPause(with watcher: DirectoryWatcher?) async -> Duration {
        var backoff = Backoff.reconnecting
        let clock = RecordingClock(isImmediate: true)
        for _ in 1...12 { #expect(await !backoff.wait(orChangeOf: watcher, clock: clock)) }
        return clock.sleeps.max() ?? .zero
    }
}
