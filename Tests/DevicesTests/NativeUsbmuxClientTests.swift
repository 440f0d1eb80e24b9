import Glibc
import Model
import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite(.scratchFolder) struct NativeUsbmuxClientTests {
    private let scratch = ScratchFolder.current

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
    func `invalid data causes a described error`(garbage: Garbage) async throws {
        let fake = try FakeUsbmuxd(in: scratch) { client in
            _ = client.request()
            client.send(garbage.bytes)
        }
        let client = NativeUsbmuxClient(address: fake.address)

        await #expect(throws: UsbmuxError.self) { _ = try await client.listDevices() }
    }

    @Test func `a usbmuxd that never replies causes a timeout`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.waitForEnd() }
        let client = NativeUsbmuxClient(address: fake.address, replyTimeout: .milliseconds(60))

        await #expect(throws: UsbmuxError.timedOut(request: "ListDevices", limit: .milliseconds(60))) {
            _ = try await client.listDevices()
        }
    }

    @Test func `valid replies are decoded`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [(1, Phones.one), (2, Phones.two)]) }
        let client = NativeUsbmuxClient(address: fake.address)

        #expect(try await client.listDevices().map(\.deviceID) == [1, 2])
    }

    @Test func `a missing socket and a missing listener are distinguished`() async throws {
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

    @Test func `usbmuxd over TCP works with a numeric address and with a name`() async throws {
        let server = try LoopbackServer(in: scratch) { FakeClient(number: $0).behave(phones: [(3, Phones.one)]) }

        for host in ["127.0.0.1", "localhost"] {
            let client = NativeUsbmuxClient(address: .tcp(host: host, port: server.port))
            #expect(try await client.listDevices().map(\.deviceID) == [3])
        }
        let nowhere = NativeUsbmuxClient(address: .tcp(host: "no-such-host.invalid", port: 1))
        await #expect(throws: UsbmuxError.self) { _ = try await nowhere.listDevices() }
    }
}
