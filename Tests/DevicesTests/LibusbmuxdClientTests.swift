import Glibc
import Model
import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite(.scratchFolder) struct LibusbmuxdClientTests {
    private let scratch = ScratchFolder.current

    @Test func `it works with descriptors above 1024, where libusbmuxd would abort`() async throws {
        ProcessLimits.raiseDescriptors()
        let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [(1, Phones.one)], welcome: "hello") }
        var held: [CInt] = []
        defer { for number in held { close(number) } }
        for _ in 0..<1100 { held.append(try #require(Optional(dup(2)).flatMap { $0 >= 0 ? $0 : nil })) }
        #expect(held.max() ?? 0 >= 1024)
        let client = LibusbmuxdClient(address: fake.address)

        let connection = try await client.connect(deviceID: 1, port: 1)

        #expect(try await connection.receive(5) == Array("hello".utf8))
    }

    @Test func `a close on the library thread keeps the descriptor of the process open`() async throws {
        let thread = IsolatedLibraryThread(named: "test")
        let ours = try #require(SocketPair())
        let number = ours.near.number

        // libusbmuxd does this with a number that now belongs to another thread.
        let status = try await thread.call { _ in close(number) }

        #expect(status == -1)
        #expect(write(ours.far.number, "x", 1) == 1)
        var byte: UInt8 = 0
        #expect(recv(number, &byte, 1, CInt(MSG_DONTWAIT)) == 1)
    }

    @Test func `a caller resumes within 500 ms, in the descriptor table of the process`() async throws {
        let thread = IsolatedLibraryThread(named: "test")
        let ours = try #require(SocketPair())
        var slowest = Duration.zero
        for _ in 0..<200 {
            let start = ContinuousClock.now
            try await thread.call { _ in }
            slowest = max(slowest, ContinuousClock.now - start)
            #expect(fcntl(ours.near.number, F_GETFD) >= 0)
        }

        #expect(slowest < .milliseconds(500))
    }

    @Test func `each of 200 streams opens within 500 ms`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [], welcome: "hello") }
        let client = LibusbmuxdClient(address: fake.address)
        var times: [Duration] = []
        for _ in 0..<200 {
            let start = ContinuousClock.now
            let connection = try await client.connect(deviceID: 1, port: 1)
            times.append(ContinuousClock.now - start)
            _ = consume connection
        }
        times.sort()

        print("libusbmuxd: 200 streams opened, median \(times[100]), slowest \(times[199])")
        #expect(times[199] < .milliseconds(500))
    }

    @Test(arguments: [(1, UsbmuxResult.badCommand), (2, .badDevice), (3, .refused)] as [(UInt32, UsbmuxResult)])
    func `the result of a failed Connect is reported, also netmuxd's 1`(code: UInt32, result: UsbmuxResult) async throws
    {
        let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [], connect: code) }
        let client = LibusbmuxdClient(address: fake.address)

        await #expect(throws: UsbmuxError.result(result, request: "Connect")) {
            _ = try await client.connect(deviceID: 1, port: 1)
        }
    }

    @Test func `its streams are non-blocking`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [], welcome: "hello") }
        let client = LibusbmuxdClient(address: fake.address)
        let connection = try await client.connect(deviceID: 1, port: 1)

        #expect(try await connection.receive(5) == Array("hello".utf8))
        // A blocking socket would wait here forever.
        var byte: UInt8 = 0
        #expect(recv(connection.descriptor.number, &byte, 1, 0) == -1)
    }

    @Test func `a usbmuxd that never replies does not block the caller forever`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.waitForEnd() }
        let client = LibusbmuxdClient(address: fake.address)
        let start = ContinuousClock.now

        let call = await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                do {
                    _ = try await client.connect(deviceID: 1, port: 1)
                    return false
                } catch is CancellationError {
                    return true
                } catch { return false }
            }
            try? await eventually("the call is under way") { fake.accepted > 0 }
            group.cancelAll()
            return await group.next() ?? false
        }

        #expect(call)
        #expect(ContinuousClock.now - start < .seconds(4))
    }
}
