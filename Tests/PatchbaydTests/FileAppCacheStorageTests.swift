import FoundationEssentials
import Logging
import Model
import TestSupport
import Testing

@testable import patchbayd

@Suite struct FileAppCacheStorageTests {
    @Test func `what an app said is there after a restart, and gone when it is forgotten`() async throws {
        try await withScratchFolder { scratch in
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let id = try #require(EndpointID("shop-iphone"))
            let other = try #require(EndpointID("bank"))
            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).recall(id) == nil)

            await FileAppCacheStorage(in: scratch.path, logger: logger).keep("{\"a\":\"é\"}", of: id)
            await FileAppCacheStorage(in: scratch.path, logger: logger).keep("{\"a\":2}", of: id)
            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).recall(id) == "{\"a\":2}")
            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).recall(other) == nil)

            await FileAppCacheStorage(in: scratch.path, logger: logger).forget(id)
            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).recall(id) == nil)
        }
    }

    @Test func `a file that is damaged is set aside`() async throws {
        try await withScratchFolder { scratch in
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let id = try #require(EndpointID("shop-iphone"))
            try scratch.makeFolder("apps")
            try scratch.write("half of", to: "apps/shop-iphone.json")

            #expect(await FileAppCacheStorage(in: scratch.path, logger: logger).recall(id) == nil)

            #expect(FileManager.default.fileExists(atPath: scratch.file("apps/shop-iphone.json.unreadable")))
        }
    }
}
