import FoundationEssentials
import Model
import Samples
import TestSupport
import Testing

@testable import Apps

@Suite(.scratchFolder) struct FileAppCacheStorageTests {
    private let scratch = ScratchFolder.current

    @Test func `cached app data survives a restart until it is deleted`() async throws {
        let id: EndpointID = "shop-iphone"
        let other: EndpointID = "bank"
        #expect(await FileAppCacheStorage(in: scratch.path, logger: .quiet).load(id) == nil)

        await FileAppCacheStorage(in: scratch.path, logger: .quiet).save("{\"a\":\"é\"}", of: id)
        await FileAppCacheStorage(in: scratch.path, logger: .quiet).save("{\"a\":2}", of: id)
        #expect(await FileAppCacheStorage(in: scratch.path, logger: .quiet).load(id) == "{\"a\":2}")
        #expect(await FileAppCacheStorage(in: scratch.path, logger: .quiet).load(other) == nil)

        await FileAppCacheStorage(in: scratch.path, logger: .quiet).delete(id)
        #expect(await FileAppCacheStorage(in: scratch.path, logger: .quiet).load(id) == nil)
    }

    @Test func `a damaged cache file is renamed`() async throws {
        let id: EndpointID = "shop-iphone"
        try scratch.makeFolder("apps")
        try scratch.write("half of", to: "apps/shop-iphone.json")

        #expect(await FileAppCacheStorage(in: scratch.path, logger: .quiet).load(id) == nil)

        #expect(FileManager.default.fileExists(atPath: scratch.file("apps/shop-iphone.json.unreadable")))
    }
}
