import FoundationEssentials
import Logging
import Model
import TestSupport
import Testing

@testable import Apps

@Suite struct FileAppCacheStorageTests {
    @Test func `cached app data survives a restart until it is deleted`() async throws {
        try await withScratchFolder { scratch in
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let id = try #require(EndpointID("shop-iphone"))
            let other = try #require(EndpointID("bank"))
            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).load(id) == nil)

            await FileAppCacheStorage(in: scratch.path, logger: logger).save("{\"a\":\"é\"}", of: id)
            await FileAppCacheStorage(in: scratch.path, logger: logger).save("{\"a\":2}", of: id)
            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).load(id) == "{\"a\":2}")
            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).load(other) == nil)

            await FileAppCacheStorage(in: scratch.path, logger: logger).delete(id)
            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).load(id) == nil)
        }
    }

    @Test func `a damaged cache file is renamed`() async throws {
        try await withScratchFolder { scratch in
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let id = try #require(EndpointID("shop-iphone"))
            try scratch.makeFolder("apps")
            try scratch.write("half of", to: "apps/shop-iphone.json")

            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).load(id) == nil)

            #expect(FileManager.default.fileExists(atPath: scratch.file("apps/shop-iphone.json.unreadable")))
        }
    }
}
