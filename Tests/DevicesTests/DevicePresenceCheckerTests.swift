import Glibc
import Model
import SystemIO
import Synchronization
import Testing

@testable import Devices

@Suite(.timeLimit(.minutes(1))) struct DevicePresenceCheckerTests {
    /// Lists what the test says, when it says so.
    private final class Lister: UsbmuxClient {
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

        func connect(deviceID: UInt32, port: UInt16) async throws -> Connection {
            throw UsbmuxError.closed(request: "Connect")
        }

        func readBUID() async throws -> String { throw UsbmuxError.closed(request: "ReadBUID") }

        func wait() async {
            for await _ in asked.stream { return }
        }

        func list(_ numbers: UInt32...) throws {
            let udid = try #require(UDID(Samples.phone))
            lists.continuation.yield(
                numbers.map { UsbmuxDeviceRecord(deviceID: $0, udid: udid, transport: .usb, productID: nil) }
            )
        }
    }

    /// A roll call that runs, and usbmuxd's end of the epoch.
    private func withRollCall(
        _ body: (DevicePresenceChecker, Lister, _ daemon: CInt) async throws -> Void
    ) async throws {
        var numbers: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &numbers) == 0)
        let daemon = Descriptor(owning: numbers[1])
        let lister = Lister()
        let rollCall = DevicePresenceChecker(
            of: UsbmuxdSession(listeningOn: Descriptor(owning: numbers[0])),
            asking: lister
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await rollCall.run() }
            try await body(rollCall, lister, daemon.number)
            group.cancelAll()
        }
    }

    private func answer(_ rollCall: DevicePresenceChecker, _ deviceID: UInt32) async -> Bool {
        await withCheckedContinuation { continuation in
            rollCall.ask(about: deviceID) { continuation.resume(returning: $0) }
        }
    }

    @Test func `who is on the list is there, and nobody else`() async throws {
        try await withRollCall { rollCall, lister, _ in
            try lister.list(3, 5)
            #expect(await answer(rollCall, 3))
            try lister.list(3, 5)
            #expect(await !answer(rollCall, 4))
        }
    }

    @Test func `one list answers all who asked before it was asked for, and no one later`() async throws {
        try await withRollCall { rollCall, lister, _ in
            let answers = AsyncStream.makeStream(of: Bool.self)
            var all = answers.stream.makeAsyncIterator()
            let say: @Sendable (Bool) -> Void = { answers.continuation.yield($0) }
            rollCall.ask(about: 1, say)
            await lister.wait()
            // The list that is on its way may have been made before these streams ended.
            for _ in 0..<100 { rollCall.ask(about: 1, say) }
            try lister.list(1)
            #expect(await all.next() == true)
            await lister.wait()
            try lister.list()

            for _ in 0..<100 { #expect(await all.next() == false) }
        }
    }

    @Test func `a list that fails vouches for nobody`() async throws {
        try await withRollCall { rollCall, lister, _ in
            lister.lists.continuation.yield(nil)
            #expect(await !answer(rollCall, 1))
        }
    }

    @Test func `a list of the next usbmuxd says nothing about this one's phones`() async throws {
        try await withRollCall { rollCall, lister, daemon in
            async let isThere = answer(rollCall, 1)
            await lister.wait()
            shutdown(daemon, CInt(SHUT_RDWR))
            try lister.list(1)

            #expect(await !isThere)
            // Nobody is asked any more.
            #expect(await !answer(rollCall, 1))
        }
    }

    @Test func `the end of the run answers all who wait, and all who come`() async throws {
        try await withRollCall { rollCall, lister, _ in
            async let first = answer(rollCall, 1)
            await lister.wait()
            async let second = answer(rollCall, 1)
            rollCall.close()

            #expect(await !second)
            #expect(await !answer(rollCall, 1))
            try lister.list(1)
            _ = await first
        }
    }
}
