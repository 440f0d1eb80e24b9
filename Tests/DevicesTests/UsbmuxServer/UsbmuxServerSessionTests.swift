@testable import Devices
import FoundationEssentials
import Model
import TestSupport
import Testing

@Suite struct UsbmuxServerSessionTests {
    private static func snapshot(_ udids: String...) throws -> UsbmuxServerSnapshot {
        var snapshot = UsbmuxServerSnapshot()
        _ = snapshot.devices.update(try udids.map { try ServerFixture.device($0) })
        return snapshot
    }

    /// Returns the session's actions for these bytes, up to the first action that is not a response.
    private static func actions(_ bytes: [UInt8], _ session: inout UsbmuxServerSession) throws -> [UsbmuxServerSession
        .Action]
    {
        session.append(bytes)
        var actions: [UsbmuxServerSession.Action] = []
        while let action = try session.nextAction(in: try snapshot(Phones.one, Phones.two)) {
            actions.append(action)
            if case .send = action { continue }
            break
        }
        return actions
    }

    /// Returns the results for these bytes, when all actions are responses.
    private static func results(_ bytes: [UInt8]) throws -> [MuxResult?] {
        var session = UsbmuxServerSession()
        return try actions(bytes, &session).map { action in
            guard case .send(let answer) = action else { return nil }
            return try MuxResult(answer)
        }
    }

    private static func result(_ code: UInt32, tag: UInt32 = 1, isBinary: Bool = false) -> MuxResult {
        MuxResult(code: code, tag: tag, isBinary: isBinary)
    }

    @Test func `a request is the same however its bytes are split`() throws {
        let request = MuxMessage.connect(MuxMessage.integer(2), MuxMessage.integer(32_498))
        var session = UsbmuxServerSession()
        var actions: [UsbmuxServerSession.Action] = []

        for byte in request {
            #expect(session.bytesNeeded > 0)
            session.append([byte])
            if let action = try session.nextAction(in: try Self.snapshot(Phones.one, Phones.two)) {
                actions.append(action)
            }
        }

        let device = try #require(try Self.snapshot(Phones.one, Phones.two).devices.device(2))
        #expect(actions == [.dial(device, port: 62_078)])
    }

    @Test func `the session reads only the request, so a following stream stays intact`() throws {
        var session = UsbmuxServerSession()
        #expect(session.bytesNeeded == 16)

        session.append(UsbmuxHeader(length: 416, version: 1, kind: 8, tag: 1).encoded)
        #expect(try session.nextAction(in: UsbmuxServerSnapshot()) == nil)

        #expect(session.bytesNeeded == 400)
    }

    private static let hopeless: [(bytes: [UInt8], code: UInt32)] = [
        (MuxMessage.connect("<integer>99</integer>", "<integer>22</integer>"), 2),
        (MuxMessage.connect("<integer>0</integer>", "<integer>22</integer>"), 2),
        (MuxMessage.connect("<integer>-1</integer>", "<integer>22</integer>"), 2),
        (MuxMessage.connect("<integer>4294967297</integer>", "<integer>22</integer>"), 2),
        (MuxMessage.connect("<string>1</string>", "<integer>22</integer>"), 2),
        (MuxMessage.request("Connect", "<key>PortNumber</key><integer>22</integer>"), 2),
        (MuxMessage.request("Connect", "<key>DeviceID</key><integer>1</integer>"), 1),
        (MuxMessage.connect("<integer>1</integer>", "<integer>70000</integer>"), 1),
        (MuxMessage.connect("<integer>1</integer>", "<integer>-22</integer>"), 1),
        (MuxMessage.connect("<integer>1</integer>", "<string>22</string>"), 1),
        (MuxMessage.connect("<integer>1</integer>", "<integer>0</integer>"), 3),
        (MuxMessage.propertyList("<dict><key>DeviceID</key><integer>1</integer></dict>"), 1),
        (MuxMessage.propertyList("<dict><key>MessageType</key><integer>1</integer></dict>"), 1),
        (MuxMessage.propertyList("<array><string>Listen</string></array>"), 1),
        (MuxMessage.propertyList(String(repeating: "<array>", count: 6_000)), 1),
        (MuxMessage.frame(Array("hello".utf8), version: 1, kind: 8), 1),
        (MuxMessage.frame(Array("bplist00".utf8), version: 1, kind: 8), 1),
        (MuxMessage.frame([], version: 1, kind: 8), 1),
    ]

    @Test(arguments: hopeless)
    func `an invalid request gets the result that tells why`(bytes: [UInt8], code: UInt32) throws {
        #expect(try Self.results(bytes) == [Self.result(code)])
    }

    @Test func `a binary request is answered in binary, with its tag`() throws {
        #expect(try Self.results(MuxMessage.frame([], version: 2, kind: 8)) == [Self.result(6, isBinary: true)])
        #expect(try Self.results(MuxMessage.frame([], version: 0, kind: 77)) == [Self.result(1, isBinary: true)])
        let short = MuxMessage.frame([1, 0, 0, 0], version: 0, kind: 2)
        #expect(try Self.results(short) == [Self.result(1, isBinary: true)])
        let unknown = MuxMessage.frame([9, 0, 0, 0, 0, 22, 0, 0], version: 0, kind: 2, tag: 0xFFFF_FFFF)
        #expect(try Self.results(unknown) == [Self.result(2, tag: 0xFFFF_FFFF, isBinary: true)])
        // After its first property list, the client gets property lists.
        let both = MuxMessage.request("Connect", tag: 1) + MuxMessage.frame([], version: 2, kind: 8, tag: 2)
        #expect(try Self.results(both) == [Self.result(2, tag: 1), Self.result(6, tag: 2)])
    }

    @Test func `a binary Connect dials, with the port in network order`() throws {
        var session = UsbmuxServerSession()

        let actions = try Self.actions(MuxMessage.frame([1, 0, 0, 0, 0xF2, 0x7E, 0, 0], version: 0, kind: 2), &session)

        let device = try #require(try Self.snapshot(Phones.one).devices.device(1))
        #expect(actions == [.dial(device, port: 62_078)])
        #expect(try MuxResult(session.connectCompleted(nil)) == Self.result(0, isBinary: true))
    }

    @Test func `after a Connect that failed the next request is answered`() throws {
        var session = UsbmuxServerSession()
        let port = MuxMessage.integer(Int(UInt16(9_876).bigEndian))

        let first = try Self.actions(MuxMessage.connect(MuxMessage.integer(1), port, tag: 3), &session)
        #expect(first.count == 1)
        let refusal = try session.connectCompleted(DialError(.refused, "nothing listens"))
        #expect(try MuxResult(refusal) == Self.result(3, tag: 3))

        #expect(try Self.actions(MuxMessage.connect(MuxMessage.integer(2), port, tag: 4), &session).count == 1)
        #expect(try MuxResult(session.connectCompleted(nil)) == Self.result(0, tag: 4))
    }

    private static let failures: [(reason: DialError.Reason, code: UInt32)] = [
        (.deviceAbsent, 2), (.usbmuxdAbsent, 2), (.refused, 3), (.timedOut, 3), (.limit, 3), (.failed, 3),
    ]

    @Test(arguments: failures)
    func `a failed dial maps to usbmuxd's result`(reason: DialError.Reason, code: UInt32) throws {
        #expect(
            try MuxResult(UsbmuxServerSession().connectCompleted(DialError(reason, "")))
                == Self.result(code, tag: 0, isBinary: true)
        )
    }

    @Test func `pipelined requests are answered in order`() throws {
        let bytes =
            MuxMessage.request("Connect", tag: 1) + MuxMessage.connect("<integer>1</integer>", "<true/>", tag: 2)

        #expect(try Self.results(bytes) == [Self.result(2, tag: 1), Self.result(1, tag: 2)])
    }

    @Test(arguments: [0, 15, 65_537, UInt32.max])
    func `an invalid length closes the connection at its header`(length: UInt32) throws {
        var session = UsbmuxServerSession()
        let header = UsbmuxHeader(length: length, version: 1, kind: 8, tag: 1).encoded

        #expect(try Self.actions(header, &session) == [.close])
        #expect(try Self.actions(MuxMessage.request("ListDevices"), &session) == [.close])
    }

    @Test func `an unknown request is forwarded unchanged, and its response has the client's tag`() throws {
        var session = UsbmuxServerSession()
        let request = MuxMessage.request(
            "ReadPairRecord",
            "<key>PairRecordID</key><string>x</string>",
            tag: 0x0102_0304
        )

        let actions = try Self.actions(request, &session)
        let answer = try session.upstreamReplied(.propertyList(Array("<plist/>".utf8)))

        #expect(actions == [.forward(Array(request.dropFirst(16)), name: "ReadPairRecord")])
        #expect(answer == MuxMessage.frame(Array("<plist/>".utf8), version: 1, kind: 8, tag: 0x0102_0304))
        #expect(try MuxResult(session.upstreamReplied(nil)) == Self.result(3, tag: 0x0102_0304))
    }

    @Test func `the device list has the keys that clients read`() throws {
        var session = UsbmuxServerSession()
        guard case .send(let bytes) = try Self.actions(MuxMessage.request("ListDevices", tag: 9), &session).first else {
            Issue.record("no answer")
            return
        }
        let frame = try #require(try UsbmuxFrame.all(in: bytes).first)

        let text = String(decoding: frame.body, as: UTF8.self)

        #expect(frame.header.tag == 9)
        #expect(frame.header.version == 1 && frame.header.kind == 8)
        for key in ["DeviceList", "Attached", "ConnectionSpeed", "USB", "LocationID", "ProductID", "SerialNumber"] {
            #expect(text.contains(">\(key)<"))
        }
        #expect(text.contains(Phones.one) && text.contains(Phones.two))
    }

    @Test func `a listener gets all devices and changes, with tag 0`() throws {
        var session = UsbmuxServerSession()
        let request = MuxMessage.request("Listen", "<key>ProgName</key><string>me</string>", tag: 5)
        let action = try Self.actions(request, &session)
        let devices = try Self.snapshot(Phones.one, Phones.two).devices.devices

        let response = try UsbmuxFrame.all(in: session.listenResponse(devices))
        let events = try UsbmuxFrame.all(in: session.deviceEvent(.detached(devices[0])))

        #expect(action == [.listen(ListenerInfo(name: "me", bundleID: nil, libraryVersion: 0))])
        #expect(response.map(\.header.tag) == [5, 0, 0])
        #expect(events.map(\.header.tag) == [0])
        #expect(String(decoding: events[0].body, as: UTF8.self).contains("Detached"))
    }

    @Test func `a binary listener gets records of 268 bytes`() throws {
        var session = UsbmuxServerSession()
        _ = try Self.actions(MuxMessage.frame([], version: 0, kind: 3), &session)
        let devices = try Self.snapshot(Phones.one).devices.devices

        let response = try UsbmuxFrame.all(in: session.listenResponse(devices))
        let events = try session.deviceEvent(.detached(devices[0]))

        #expect(response.map(\.header.kind) == [1, 4])
        let record = response[1].body
        #expect(record.count == 268)
        #expect(Array(record[..<6]) == [1, 0, 0, 0, 0xA8, 0x12])
        #expect(String(decoding: record[6...].prefix { $0 != 0 }, as: UTF8.self) == Phones.one)
        #expect(Array(record.suffix(6)) == [0, 0, 1, 0, 1, 0])
        #expect(events == MuxMessage.frame([1, 0, 0, 0], version: 0, kind: 5, tag: 0))
    }

    @Test func `arbitrary bytes do not crash the session`() throws {
        var generator = SystemRandomNumberGenerator()
        let seeds = [
            MuxMessage.request("Listen"), MuxMessage.connect("<integer>1</integer>", "<integer>22</integer>"),
            MuxMessage.frame([1, 0, 0, 0, 0, 22, 0, 0], version: 0, kind: 2),
        ]
        for _ in 0..<2_000 {
            var bytes = try #require(seeds.randomElement(using: &generator))
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(
                    in: 0 ... .max,
                    using: &generator
                )
            }
            var session = UsbmuxServerSession()
            let actions = try Self.actions(bytes, &session)
            #expect(actions.count <= bytes.count / 16)
        }
    }
}
