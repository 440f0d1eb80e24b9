import FoundationEssentials
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@testable import Registry

@Suite(.scratchFolder) struct RegistryPersisterTests {
    private let scratch = ScratchFolder.current

    @Test func `a removal is on the disk when the save returns, and no earlier write replaces it`() async throws {
        let file = StateFile<RegistryState>("endpoints", in: scratch.path, logger: .quiet)
        let registry = EndpointRegistry()
        let persister = RegistryPersister(registry, in: file, logger: .quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await persister.run() }
            for number in 1...40 {
                let sighting = Seen.network("com.example.n\(number)")
                await registry.apply(.seen(sighting))
                let endpoint = try #require(await registry.endpoint(seenAs: sighting.id))
                await registry.apply(.lost(sighting.id))
                // The first write shows that the persister runs.
                if number == 1 { try await eventually("a saved endpoint") { try await file.read() != nil } }
                try await registry.remove(endpoint.id)
                try await registry.save()
                let saved = try await file.read()
                #expect(saved?.records.map(\.endpoint.id).contains(endpoint.id) == false)
                #expect(await registry.revision == saved?.revision)
            }
            group.cancelAll()
        }
    }
}
