import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Devices

/// The reply to Connect, as bytes.
@Suite(.scratchFolder) struct UsbmuxConnectReplyTests {
    private let scratch = ScratchFolder.current

    private func evaluate(_ bytes: [UInt8], known: [UInt8] = []) -> ConnectPlan.Handshake.Result {
        let known = Mutex(known)
        return bytes.withUnsafeBytes { UsbmuxConnectReply.evaluate($0, known: known) }
    }

    @Test(arguments: [[], MuxMessage.result(0)])
    func `the reply "ok" is accepted as soon as it is complete, without the bytes after it`(known: [UInt8]) {
        let reply = MuxMessage.result(0)

        for count in 0..<reply.count { #expect(evaluate(Array(reply.prefix(count)), known: known) == .incomplete) }
        #expect(evaluate(reply, known: []) == .accepted(length: reply.count))
        #expect(evaluate(reply + Array("hello".utf8), known: known) == .accepted(length: reply.count))
    }

    @Test func `the last reply "ok" becomes the known one, and a rejection does not`() {
        let known = Mutex<[UInt8]>([])
        let reply = MuxMessage.result(0)

        for bytes in [reply + [1], MuxMessage.result(3)] {
            _ = bytes.withUnsafeBytes { UsbmuxConnectReply.evaluate($0, known: known) }
        }

        #expect(known.withLock { $0 } == reply)
    }

    @Test func `every other reply is rejected, a result with its code`() {
        for code in [1, 2, 3] as [UInt32] {
            #expect(evaluate(MuxMessage.result(code)) == .failed(.rejected(code: code)))
        }
        let others = [
            MuxMessage.result(0, tag: 77),
            MuxMessage.buid(),
            UsbmuxHeader(length: .max, version: 1, kind: 8, tag: 1).encoded,
            UsbmuxHeader(length: 3, version: 1, kind: 8, tag: 1).encoded,
            Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8),
        ]
        for other in others { #expect(evaluate(other) == .failed(.closed)) }
    }

    @Test func `the plan of a route has the DeviceID of now, and an absent device has none`() async throws {
        let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [(41, Phones.one)]) }
        try await withMonitor(at: fake.address) { monitor in
            try await eventually("the phone is listed") { await monitor.devices().count == 1 }
            func plan(_ udid: String) async throws -> ConnectPlan {
                try await monitor.planner.plan(for: .usb(USBRoute(udid: try #require(UDID(udid)), port: 80)))
            }

            let present = try await plan(Phones.one)

            guard case .socket(let address, let handshake?) = present.method else {
                Issue.record("the plan has no handshake")
                return
            }
            #expect(address == .unix(path: fake.path) && present.halfClose == .destroys)
            #expect(handshake.requests[0] == UsbmuxRequest.connect(deviceID: 41, port: 80).message.encoded)
            #expect(present.limitKey?.device == 41 && present.linkCheck != nil)
            await #expect(throws: DialError.self) { _ = try await plan(Phones.two) }
        }
    }
}
