import Glibc
import Model
import TestSupport
import SystemIO
import Synchronization
import Testing

@testable import Devices

@Suite(.timeLimit(.minutes(1))) struct DevicePresenceCheckerTests {
    /// Returns the lists that the test provides, when the test provides them.
    private final class ScriptedListClient: Sendable {
        let asked = AsyncStream.makeStream(of: Void.self)
        let lists = AsyncStream.makeStream(of: [UsbmuxDeviceRecord]?.self)

        func listDevices() async throws -> [UsbmuxDeviceRecord] {
            asked.continuation.yield()
            for await list in lists.stream {
                guard let list else { break }
                return list
            }
            throw UsbmuxError.closed(request: "ListDevices")
        }

        func wait() async {
            for await _ in asked.stream { return }
        }

        func list(_ numbers: UInt32...) throws {
            let udid = try #require(UDID(Phones.one))
            lists.continuation.yield(
                numbers.map { UsbmuxDeviceRecord(deviceID: $0, udid: udid, transport: .usb, productID: nil) }
            )
        }
    }

    /// Runs a presence checker. The body also gets usbmuxd's end of the session.
    private func withChecker(
        _ body: (DevicePresenceChecker, ScriptedListClient, _ daemon: CInt) async throws -> Void
    ) async throws {
        var numbers: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &numbers) == 0)
        let daemon = Descriptor(owning: numbers[1])
        let listClient = ScriptedListClient()
        let presenceChecker = DevicePresenceChecker(
            of: UsbmuxdInstance(listeningOn: Descriptor(owning: numbers[0]), path: "/"),
            list: listClient.listDevices
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await presenceChecker.run() }
            try await body(presenceChecker, listClient, daemon.number)
            group.cancelAll()
        }
    }

    private func answer(_ presenceChecker: DevicePresenceChecker, _ deviceID: UInt32) async -> Bool {
        await withCheckedContinuation { continuation in
            presenceChecker.check(deviceID) { continuation.resume(returning: $0) }
        }
    }

    @Test func `a listed device is connected, and every other device is not`() async throws {
        try await withChecker { presenceChecker, listClient, _ in
            try listClient.list(3, 5)
            #expect(await answer(presenceChecker, 3))
            try listClient.list(3, 5)
            #expect(await !answer(presenceChecker, 4))
        }
    }

    @Test func `one list answers all checks made before its request, and none made later`() async throws {
        try await withChecker { presenceChecker, listClient, _ in
            let answers = AsyncStream.makeStream(of: Bool.self)
            var all = answers.stream.makeAsyncIterator()
            let say: @Sendable (Bool) -> Void = { answers.continuation.yield($0) }
            presenceChecker.check(1, say)
            await listClient.wait()
            // The list in progress may have been made before these streams ended.
            for _ in 0..<100 { presenceChecker.check(1, say) }
            try listClient.list(1)
            #expect(await all.next() == true)
            await listClient.wait()
            try listClient.list()

            for _ in 0..<100 { #expect(await all.next() == false) }
        }
    }

    @Test func `a failed list confirms no device`() async throws {
        try await withChecker { presenceChecker, listClient, _ in
            listClient.lists.continuation.yield(nil)
            #expect(await !answer(presenceChecker, 1))
        }
    }

    @Test func `a list of the next usbmuxd says nothing about devices of this session`() async throws {
        try await withChecker { presenceChecker, listClient, daemon in
            async let isThere = answer(presenceChecker, 1)
            await listClient.wait()
            shutdown(daemon, CInt(SHUT_RDWR))
            try listClient.list(1)

            #expect(await !isThere)
            // Later checks send no request.
            #expect(await !answer(presenceChecker, 1))
        }
    }

    @Test func `the end of the session answers all pending and all later checks`() async throws {
        try await withChecker { presenceChecker, listClient, _ in
            async let first = answer(presenceChecker, 1)
            await listClient.wait()
            async let second = answer(presenceChecker, 1)
            presenceChecker.close()

            #expect(await !second)
            #expect(await !answer(presenceChecker, 1))
            try listClient.list(1)
            _ = await first
        }
    }
}
