import Foundation
import TestSupport
import Testing

@testable import Devices

/// Sends the same bytes to the real usbmuxd and to Patchbay's server and compares the responses.
@Suite(.needs(.usbmuxd), .timeLimit(.minutes(2)), .scratchFolder) struct UsbmuxServerDifferentialTests {
    private let scratch = ScratchFolder.current

    /// The bytes to send and the number of expected responses, for a given phone and open port.
    private struct Case: Sendable {
        let name: String
        var answers = 1
        /// True if the server closes after its responses.
        var ends = false
        let bytes: @Sendable (_ deviceID: UInt32, _ open: UInt16) -> [UInt8]
    }

    /// A port without a listener.
    private static let closed: UInt16 = 9

    private static let cases = [
        Case(name: "ListDevices") { _, _ in MuxPeer.request("ListDevices", tag: 0xDEAD_BEEF) },
        Case(name: "ReadBUID") { _, _ in MuxPeer.request("ReadBUID", tag: 2) },
        Case(name: "ListListeners") { _, _ in MuxPeer.request("ListListeners", tag: 3) },
        Case(name: "ReadPairRecord of nobody") { _, _ in
            MuxPeer.request("ReadPairRecord", "<key>PairRecordID</key><string>nobody</string>", tag: 4)
        },
        Case(name: "ReadPairRecord without its key") { _, _ in MuxPeer.request("ReadPairRecord", tag: 4) },
        Case(name: "DeletePairRecord of nobody") { _, _ in
            MuxPeer.request("DeletePairRecord", "<key>PairRecordID</key><string>nobody</string>", tag: 4)
        },
        Case(name: "an unknown message") { _, _ in MuxPeer.request("Sing", tag: 5) },
        Case(name: "Connect") { MuxPeer.connect($0, $1, tag: 6) },
        Case(name: "Connect to a closed port") { id, _ in MuxPeer.connect(id, closed, tag: 7) },
        Case(name: "Connect to port 0") { id, _ in MuxPeer.connect(id, 0, tag: 7) },
        Case(name: "Connect to an unknown phone") { _, open in MuxPeer.connect(99, open, tag: 8) },
        Case(name: "Connect to phone 0") { _, open in MuxPeer.connect(0, open, tag: 8) },
        Case(name: "Connect without DeviceID") { _, _ in
            MuxPeer.request("Connect", "<key>PortNumber</key><integer>22</integer>", tag: 9)
        },
        Case(name: "Connect without PortNumber") { id, _ in
            MuxPeer.request("Connect", "<key>DeviceID</key><integer>\(id)</integer>", tag: 10)
        },
        Case(name: "two failures, then a stream", answers: 3) { id, open in MuxPeer.connect(99, open, tag: 1) },
        Case(name: "pipelined requests", answers: 2) { _, _ in
            MuxPeer.request("ListDevices", tag: 1) + MuxPeer.request("Sing", tag: 2)
        },
        Case(name: "Listen", answers: 2) { _, _ in MuxPeer.request("Listen", tag: 11) },
        Case(name: "a command after Listen", answers: 2, ends: true) { _, _ in MuxPeer.request("Listen", tag: 1) },
        Case(name: "version 2") { _, _ in MuxMessage.frame(version: 2, kind: 8, tag: 12) },
        Case(name: "version 2 after a property list", answers: 2) { _, _ in
            MuxPeer.request("Sing", tag: 1) + MuxMessage.frame(version: 2, kind: 8, tag: 12)
        },
        Case(name: "an unknown kind") { _, _ in MuxMessage.frame(version: 1, kind: 77, tag: 13) },
        Case(name: "a binary Connect") { id, open in
            MuxMessage.frame(word(id) + [UInt8(open >> 8), UInt8(open & 0xFF), 0, 0], version: 0, kind: 2, tag: 14)
        },
        Case(name: "a binary Connect to a closed port") { id, _ in
            MuxMessage.frame(word(id) + [0, UInt8(closed), 0, 0], version: 0, kind: 2, tag: 14)
        },
        Case(name: "a binary Connect to an unknown phone") { _, _ in
            MuxMessage.frame(word(99) + [0, 22, 0, 0], version: 0, kind: 2, tag: 14)
        },
        Case(name: "a binary Listen", answers: 2) { _, _ in MuxMessage.frame(version: 0, kind: 3, tag: 15) },
        Case(name: "a length above the limit", answers: 0, ends: true) { _, _ in
            UsbmuxHeader(length: 65_537, version: 1, kind: 8, tag: 1).encoded
        },
        Case(name: "a length below the header's", answers: 0, ends: true) { _, _ in
            UsbmuxHeader(length: 15, version: 1, kind: 8, tag: 1).encoded
        },
    ]

    private static func word(_ number: UInt32) -> [UInt8] { UsbmuxHeader.bytes(of: number) }

    /// Describes the responses of one server in words; DeviceIDs are replaced.
    private static func exchange(_ test: Case, at path: String, _ open: UInt16) throws -> [String] {
        let deviceID = try #require(try MuxPeer(to: path).devices().values.first)
        let listener = try MuxPeer(to: path)
        #expect(try listener.ask("Listen")["Number"] as? Int == 0)
        defer { withExtendedLifetime(listener) {} }
        let peer = try MuxPeer(to: path)
        try peer.send(test.bytes(deviceID, open))
        var responses: [String] = []
        for answer in 0..<test.answers {
            guard let frame = try peer.frame() else { return responses + ["end"] }
            responses.append(try describe(frame, deviceID))
            // Sends the next request only after the last response: usbmuxd reads no requests while it connects.
            if test.name.hasPrefix("two failures"), answer < 2 {
                try peer.send(MuxPeer.connect(deviceID, answer == 0 ? closed : open, tag: UInt32(answer) + 2))
            }
        }
        if test.ends {
            if test.answers > 0 { try peer.send(MuxPeer.request("ListDevices", tag: 2)) }
            responses.append(try peer.frame() == nil ? "end" : "more")
        }
        return responses
    }

    private static func describe(_ frame: UsbmuxFrame, _ deviceID: UInt32) throws -> String {
        let head = "version \(frame.header.version) kind \(frame.header.kind) tag \(frame.header.tag): "
        guard frame.header.kind == 8 else {
            let body = frame.header.kind == 4 ? word(0) + frame.body.dropFirst(4) : frame.body
            return head + body.map { String($0, radix: 16) }.joined(separator: " ")
        }
        let list = try PropertyListSerialization.propertyList(from: Data(frame.body), format: nil)
        return head + plain(list)
    }

    /// A property list with sorted keys, without DeviceIDs, client numbers and the broker's entry as a listener.
    private static func plain(_ value: Any) -> String {
        switch value {
        case let list as [String: Any]:
            "{"
                + list.sorted { $0.key < $1.key }
                .map { ["DeviceID", "ID String"].contains($0.key) ? $0.key : "\($0.key)=\(plain($0.value))" }.joined(
                    separator: ", "
                ) + "}"
        case let list as [Any]: "[" + list.map(plain).filter { !$0.contains("=patchbay") }.joined(separator: ", ") + "]"
        default: "\(value)"
        }
    }

    @Test func `the server sends the same responses as usbmuxd`() async throws {
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let app = try EchoServer(in: scratch)
        let facade = try await RunningUsbmuxServer(in: scratch, phones: rig)
        try await facade.lists([Phones.one])

        for test in Self.cases {
            let real = try Self.exchange(test, at: rig.socketPath, app.port)
            try await eventually("the listeners of the case before are gone") {
                let listeners = try MuxPeer(to: facade.path).ask("ListListeners")["ListenerList"] as? [[String: Any]]
                return listeners?.contains { $0["ProgName"] as? String == "peer" } == false
            }
            let ours = try Self.exchange(test, at: facade.path, app.port)

            #expect(ours == real, "\(test.name)")
            #expect(ours.count == test.answers + (test.ends ? 1 : 0), "\(test.name)")
        }
    }

    /// usbmuxd never answers these requests, and its client waits forever.
    @Test func `the server answers "bad command" where usbmuxd is silent, and continues`() async throws {
        let facade = try await RunningUsbmuxServer(in: scratch, phones: nil)
        let peer = try MuxPeer(to: facade.path)

        for body in ["", "hello", "bplist00\u{1}\u{2}", "<plist version=\"1.0\"><dict></dict></plist>"] {
            try peer.send(MuxMessage.frame(Array(body.utf8), version: 1, kind: 8, tag: 21))
            #expect(try peer.list()["Number"] as? Int == 1)
        }
        #expect(try peer.devices().isEmpty)
    }
}
