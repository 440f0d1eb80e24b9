import Glibc
import Model
import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite(.timeLimit(.minutes(1))) struct DevicePresenceTests {
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

    /// Runs a session that answers checks. The body also gets usbmuxd's end of it.
    private func withSession(
        _ body: (UsbmuxdInstance, ScriptedListClient, _ daemon: CInt) async throws -> Void
    ) async throws {
        var numbers: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &numbers) == 0)
        let daemon = Descriptor(owning: numbers[1])
        let listClient = ScriptedListClient()
        let session = UsbmuxdInstance(listeningOn: Descriptor(owning: numbers[0]), path: "/")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await session.answerChecks(list: listClient.listDevices) }
            try await body(session, listClient, daemon.number)
            group.cancelAll()
        }
    }

    private func answer(_ session: UsbmuxdInstance, _ deviceID: UInt32) async -> Bool {
        await withCheckedContinuation { continuation in session.check(deviceID) { continuation.resume(returning: $0) } }
    }

    @Test func `a listed device is connected, and every other device is not`() async throws {
        try await withSession { session, listClient, _ in
            try listClient.list(3, 5)
            #expect(await answer(session, 3))
            try listClient.list(3, 5)
            #expect(await !answer(session, 4))
        }
    }

    @Test func `one list answers all checks made before its request, and none made later`() async throws {
        try await withSession { session, listClient, _ in
            let answers = AsyncStream.makeStream(of: Bool.self)
            var all = answers.stream.makeAsyncIterator()
            let say: @Sendable (Bool) -> Void = { answers.continuation.yield($0) }
            session.check(1, say)
            await listClient.wait()
            // The list in progress may have been made before these streams ended.
            for _ in 0..<100 { session.check(1, say) }
            try listClient.list(1)
            #expect(await all.next() == true)
            await listClient.wait()
            try listClient.list()

            for _ in 0..<100 { #expect(await all.next() == false) }
        }
    }

    @Test func `a failed list confirms no device`() async throws {
        try await withSession { session, listClient, _ in
            listClient.lists.continuation.yield(nil)
            #expect(await !answer(session, 1))
        }
    }

    @Test func `a list of the next usbmuxd says nothing about devices of this session`() async throws {
        try await withSession { session, listClient, daemon in
            async let isThere = answer(session, 1)
            await listClient.wait()
            shutdown(daemon, CInt(SHUT_RDWR))
            try listClient.list(1)

            #expect(await !isThere)
            // Later checks send no request.
            #expect(await !answer(session, 1))
        }
    }

    @Test func `the end of the session answers all pending and all later checks`() async throws {
        try await withSession { session, listClient, _ in
            async let first = answer(session, 1)
            await listClient.wait()
            async let second = answer(session, 1)
            session.close()

            #expect(await !second)
            #expect(await !answer(session, 1))
            try listClient.list(1)
            _ = await first
        }
    }
}
