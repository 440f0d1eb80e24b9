import ServiceLifecycle

/// Ends grants and invites when their time has come, and cuts what lives under them within a second.
package struct ExpirationService: Service {
    private let store: AccessStore
    private let clock: any Clock<Duration>

    package init(of store: AccessStore, clock: any Clock<Duration> = ContinuousClock()) {
        self.store = store
        self.clock = clock
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let (pause, wakes) = await store.sweep()
                await wait(pause, or: wakes)
            }
        }
    }

    /// Until the time is over or there may be something earlier to end.
    private func wait(_ pause: Duration, or wakes: AsyncStream<Void>) async {
        await withTaskGroup { group in
            group.addTask { try? await clock.sleep(for: pause) }
            group.addTask { for await _ in wakes { break } }
            await group.next()
            group.cancelAll()
        }
    }
}
