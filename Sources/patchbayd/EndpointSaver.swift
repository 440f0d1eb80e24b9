import Model
import Registry
import ServiceLifecycle
import State

/// What a run of the broker leaves to the next one.
struct RegistryState: Codable, Sendable {
    var revision: UInt64
    var records: [EndpointRecord]
}

/// Keeps the registry's file up to date, so that ids outlive a restart.
struct EndpointSaver: Service {
    let registry: EndpointRegistry
    let file: StateFile<RegistryState>
    /// How long changes gather before they are written together.
    static let pause = Duration.milliseconds(200)

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let (_, changes) = await registry.changes()
                var saved = try await save()
                for await change in changes where change.revision > saved {
                    try await Task.sleep(for: Self.pause)
                    saved = try await save()
                }
                try Task.checkCancellation()
            }
        }
        _ = try await save()
    }

    private func save() async throws -> UInt64 {
        let state = RegistryState(revision: await registry.revision, records: await registry.records)
        try await file.write(state)
        return state.revision
    }
}
