import Glibc
import Model
import TestSupport
import SystemIO
import Testing

@testable import Devices

@Suite struct NativeUsbmuxClientTests {
    /// Invalid data that a broken usbmuxd might send.
    enum Garbage: String, CaseIterable {
        case nothingAndClose, truncatedHeader, truncatedBody, fourGigabytes, shorterThanHeader, wrongVersion, wrongTag
        case binaryList, bomb, endlessBody, noise, emptyList, http

        var bytes: [UInt8] {
            switch self {
            case .nothingAndClose: []
            case .truncatedHeader: Array(MuxMessage.result(0).prefix(7))
            case .truncatedBody: MuxMessage.result(0).dropLast(9)
            case .fourGigabytes: UsbmuxHeader(length: .max, version: 1, kind: 8, tag: 1).encoded
            case .shorterThanHeader: UsbmuxHeader(length: 3, version: 1, kind: 8, tag: 1).encoded
            case .wrongVersion: UsbmuxMessage(tag: 1, body: .result(.badVersion)).encoded
            case .wrongTag: MuxMessage.result(0, tag: 77)
            case .binaryList: UsbmuxMessage(tag: 1, body: .propertyList(Array("bplist00\u{8}".utf8))).encoded
            case .bomb: MuxMessage.propertyList(String(repeating: "<array>", count: 60_000))
            case .endlessBody:
                UsbmuxHeader(length: 1 << 20, version: 1, kind: 8, tag: 1).encoded + [UInt8](repeating: 60, count: 5000)
            case .noise: (0..<9999).map { UInt8(truncatingIfNeeded: $0 &* 7919 >> 3) }
            case .emptyList: UsbmuxMessage(tag: 1, body: .propertyList([])).encoded
            case .http: Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
            }
        }
    }

    @Test(arguments: Garbage.allCases)
    func `invalid data causes a described error and leaves nothing open`(garbage: Garbage) async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { client in
                _ = client.request()
                client.send(garbage.bytes)
            }
            let connectionLimit = UsbmuxConnectionLimiter()
            let client = NativeUsbmuxClient(address: fake.address, connectionLimit: connectionLimit)

            await #expect(throws: UsbmuxError.self) { _ = try await client.listDevices() }
            await #expect(throws: UsbmuxError.self) { _ = try await client.readBUID() }
            await #expect(throws: UsbmuxError.self) { _ = try await client.connect(deviceID: 1, port: 1) }

            #expect(connectionLimit.used == 0)
        }
    }

    @Test func `a usbmuxd that never replies causes a timeout`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.waitForEnd() }
            let client = NativeUsbmuxClient(
                address: fake.address,
                connectTimeout: .milliseconds(120),
                replyTimeout: .milliseconds(60)
            )

            await #expect(throws: UsbmuxError.timedOut(request: "ListDevices", limit: .milliseconds(60))) {
                _ = try await client.listDevices()
            }
            await #expect(throws: UsbmuxError.timedOut(request: "Connect", limit: .milliseconds(120))) {
                _ = try await client.connect(deviceID: 1, port: 1)
            }
        }
    }

    @Test func `valid replies are decoded`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) {
                $0.behave(phones: [(1, Phones.one), (2, Phones.two)])
            }
            let client = NativeUsbmuxClient(address: fake.address)

            #expect(try await client.listDevices().map(\.deviceID) == [1, 2])
            #expect(try await client.readBUID() == "30142955-4440-1111-2222-000000000000")
        }
    }

    @Test(
        arguments: [(1, UsbmuxResult.badCommand), (2, .badDevice), (3, .refused), (9, .other(9))]
            as [(UInt32, UsbmuxResult)]
    )
    func `an error result names its cause`(code: UInt32, result: UsbmuxResult) async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [], connect: code) }
            let client = NativeUsbmuxClient(address: fake.address)

            await #expect(throws: UsbmuxError.result(result, request: "Connect")) {
                _ = try await client.connect(deviceID: 1, port: 1)
            }
        }
    }

    @Test func `bytes sent first by the device are received first`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [], welcome: "SSH-2.0-phone") }

            let connection = try await NativeUsbmuxClient(address: fake.address).connect(deviceID: 1, port: 22)

            #expect(try await connection.receive(13) == Array("SSH-2.0-phone".utf8))
        }
    }

    @Test func `a stream holds a permit until the stream is released`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: []) }
            let connectionLimit = UsbmuxConnectionLimiter(limit: 1)
            let client = NativeUsbmuxClient(
                address: fake.address,
                connectionLimit: connectionLimit,
                connectTimeout: .milliseconds(500)
            )
            do {
                let first = try await client.connect(deviceID: 1, port: 1)
                await #expect(throws: UsbmuxError.tooManyConnections(1)) {
                    _ = try await client.connect(deviceID: 1, port: 1)
                }
                let released = first.release()
                #expect(connectionLimit.used == 1)
                _ = withExtendedLifetime(released.permit) { close(released.number) }
            }
            #expect(connectionLimit.used == 0)

            _ = try await client.connect(deviceID: 1, port: 1)
        }
    }

    @Test func `a full accept queue is retried`() async throws {
        try await withScratchFolder { scratch in
            let queue = try FakeUsbmuxd(in: scratch, backlog: 0, pause: .milliseconds(20)) { $0.behave(phones: []) }
            let client = NativeUsbmuxClient(address: queue.address)

            try await withThrowingTaskGroup(of: Void.self) { group in
                for device in 1...16 as ClosedRange<UInt32> {
                    group.addTask { _ = try await client.connect(deviceID: device, port: 1) }
                }
                try await group.waitForAll()
            }

            #expect(queue.accepted == 16)
        }
    }

    @Test func `a silent device does not delay another device`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { client in
                guard let text = client.requestText() else { return }
                if text.contains("<integer>2</integer>") { client.send(MuxMessage.result(0)) }
                client.waitForEnd()
            }
            let client = NativeUsbmuxClient(address: fake.address, connectTimeout: .seconds(20))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<40 {
                    group.addTask { _ = try? await client.connect(deviceID: 1, port: 1) }
                }
                try await eventually("the silent phone is being dialled") { fake.accepted >= 4 }

                let start = ContinuousClock.now
                for _ in 0..<10 { _ = try await client.connect(deviceID: 2, port: 1) }
                #expect(ContinuousClock.now - start < .seconds(10))
                group.cancelAll()
            }
            #expect(fake.accepted <= 4 + 10 + 4)
        }
    }

    @Test func `cancellation ends the request at once and releases its permit`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.waitForEnd() }
            let connectionLimit = UsbmuxConnectionLimiter()
            let client = NativeUsbmuxClient(address: fake.address, connectionLimit: connectionLimit)
            let start = ContinuousClock.now

            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        await #expect(throws: CancellationError.self) {
                            _ = try await client.connect(deviceID: 1, port: 1)
                        }
                    }
                }
                group.cancelAll()
            }

            #expect(ContinuousClock.now - start < .seconds(8))
            #expect(connectionLimit.used == 0)
        }
    }

    @Test func `a missing socket and a missing listener are distinguished`() async throws {
        try await withScratchFolder { scratch in
            let path = scratch.file("none")
            let client = NativeUsbmuxClient(address: .unix(path: path))
            await #expect(throws: UsbmuxError.absent(.unix(path: path), errno: ENOENT)) {
                _ = try await client.listDevices()
            }
            let fake = try FakeUsbmuxd(at: path) { $0.waitForEnd() }
            fake.stop()
            try await eventually("the socket is stale") {
                do { _ = try await client.listDevices() } catch UsbmuxError.absent(_, ECONNREFUSED) {
                    return true
                } catch {}
                return false
            }
        }
    }

    @Test func `usbmuxd over TCP works with a numeric address and with a name`() async throws {
        try await withScratchFolder { scratch in
            let server = try LoopbackServer(in: scratch) {
                FakeClient(number: $0).behave(phones: [(3, Phones.one)])
            }

            for host in ["127.0.0.1", "localhost"] {
                let client = NativeUsbmuxClient(address: .tcp(host: host, port: server.port))
                #expect(try await client.listDevices().map(\.deviceID) == [3])
            }
            let nowhere = NativeUsbmuxClient(address: .tcp(host: "no-such-host.invalid", port: 1))
            await #expect(throws: UsbmuxError.self) { _ = try await nowhere.listDevices() }
        }
    }
}
