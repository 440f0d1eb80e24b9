import Model
import SystemIO
import TestSupport
import Testing

@testable import Devices

@Suite(.timeLimit(.minutes(1))) struct LockdownClientTests {
    private static let keys = ["DeviceName", "ProductType", "ProductVersion"]
    private let udid: UDID

    init() throws { udid = try #require(UDID(Phones.one)) }

    @Test func `a phone's name, model and version are requested one after the other, without pairing`() async throws {
        let dialer = FakeDialer.connected(halfClose: .destroys)
        let client = LockdownClient(dialer: dialer, clock: ContinuousClock())
        async let values = client.values(of: udid)

        let phone = try await Self.phone(of: dialer)
        var requests: [String] = []
        for (key, value) in zip(Self.keys, ["Anna’s iPhone", "iPhone15,3", "17.5"]) {
            requests.append(try await Self.request(to: phone))
            try await phone.send(LockdownServer.reply(key, value: value))
        }

        #expect(dialer.routes == [.usb(USBRoute(udid: udid, port: 62_078))])
        for (key, request) in zip(Self.keys, requests) {
            #expect(request.contains("<key>Key</key><string>\(key)</string>"), "\(request)")
            #expect(request.contains("<key>Request</key><string>GetValue</string>"), "\(request)")
            #expect(request.contains("<key>Label</key><string>patchbay</string>"), "\(request)")
        }
        let expected = LockdownValues(
            name: SanitizedText("Anna’s iPhone"),
            productType: SanitizedText("iPhone15,3"),
            productVersion: SanitizedText("17.5")
        )
        #expect(try await values == expected)
    }

    @Test func `replies may arrive byte by byte`() async throws {
        let replies = Self.keys.map { LockdownServer.reply($0, value: "value of \($0)") }

        let values = try await values(answering: replies, pieces: 1)

        #expect(values.name?.text == "value of DeviceName")
        #expect(values.productVersion?.text == "value of ProductVersion")
    }

    @Test func `a value that the phone does not have or leaves blank is absent`() async throws {
        let values = try await values(answering: [
            LockdownServer.reply("DeviceName", value: "  "),
            LockdownServer.reply("ProductType", error: "MissingValue"),
            LockdownServer.reply("ProductVersion", value: "17.5"),
        ])

        #expect(values == LockdownValues(productVersion: SanitizedText("17.5")))
    }

    @Test func `a name cannot carry terminal escapes and is at most 63 bytes long`() async throws {
        let name = "\u{202E}Anna\u{2028}" + String(repeating: "x", count: 60_000)
        let replies = Self.keys.map { LockdownServer.reply($0, value: name) }

        let values = try await values(answering: replies)

        #expect(values.name?.text.hasPrefix("\u{FFFD}Anna\u{FFFD}xxx") == true)
        #expect(values.name.map { $0.text.utf8.count <= 63 } == true)
    }

    @Test(arguments: [
        ("PasswordProtected", LockdownError.locked), ("GetProhibited", .refused(SanitizedText("GetProhibited"))),
    ])
    func `a refusal is an error, and only a locked phone is worth another attempt`(
        error: String,
        expected: LockdownError
    ) async throws {
        await #expect(throws: expected) {
            try await values(answering: [LockdownServer.reply("DeviceName", error: error)])
        }
        #expect(expected.isTransient == (error == "PasswordProtected"))
    }

    @Test(arguments: [
        Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), [0, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [0, 1, 0, 1],
        [0, 0, 0, 6] + Array("bplist".utf8), [0, 0, 0, 3, 1, 2, 3],
        LockdownServer.frame("<array/>"), LockdownServer.frame("<dict><key>Request</key><string>Pair</string></dict>"),
        LockdownServer.frame("<dict><key>Request</key><integer>1</integer></dict>"),
        LockdownServer.frame(String(repeating: "<array>", count: 1_000)),
        LockdownServer.reply("ProductType", value: "the answer to another question"),
    ])
    func `data that is not a reply is an error, and no more of it is read`(garbage: [UInt8]) async throws {
        let error = await #expect(throws: LockdownError.self) { try await values(answering: [garbage]) }

        guard case .malformedReply? = error else {
            Issue.record("\(String(describing: error)) is not a malformed reply")
            return
        }
        #expect(error?.isTransient == false)
    }

    @Test func `a phone that closes the connection is worth another attempt`() async throws {
        let dialer = FakeDialer { _ in
            let (near, _) = SocketStream.pair()
            return Connection(descriptor: near.handOver(), halfClose: .destroys)
        }
        let client = LockdownClient(dialer: dialer, clock: ContinuousClock())

        await #expect(throws: LockdownError.closed) { try await client.values(of: udid) }
        #expect(LockdownError.closed.isTransient)
    }

    @Test(arguments: [true, false])
    func `a silent phone is given up after 2 s, before and after the connection`(isConnected: Bool) async throws {
        let clock = ManualClock()
        let dialer = isConnected ? FakeDialer.connected() : FakeDialer.silent()
        let client = LockdownClient(dialer: dialer, clock: clock)
        async let end: Void = {
            await clock.waitForSleeper()
            clock.advance(by: .seconds(2))
        }()

        await #expect(throws: LockdownError.timedOut) { try await client.values(of: udid) }
        await end
        #expect(LockdownError.timedOut.isTransient)
    }

    @Test func `a port without lockdownd is a dial error`() async throws {
        let dialer = FakeDialer { _ in throw DialError(.refused, "nothing listens there") }
        let client = LockdownClient(dialer: dialer, clock: ContinuousClock())

        await #expect(throws: DialError.self) { try await client.values(of: udid) }
    }

    /// The values from a phone that sends these replies in pieces of this size.
    private func values(answering replies: [[UInt8]], pieces: Int = .max) async throws -> LockdownValues {
        let dialer = FakeDialer.connected(halfClose: .destroys)
        let client = LockdownClient(dialer: dialer, clock: ContinuousClock())
        async let values = client.values(of: udid)
        let phone = try await Self.phone(of: dialer)
        for reply in replies {
            _ = try await Self.request(to: phone)
            var rest = reply[...]
            while !rest.isEmpty {
                try await phone.send(rest.prefix(pieces))
                rest = rest.dropFirst(pieces)
            }
        }
        return try await values
    }

    /// The other end of the next connection.
    private static func phone(of dialer: FakeDialer) async throws -> SocketStream {
        var peers = dialer.peers.makeAsyncIterator()
        return try #require(await peers.next())
    }

    /// The property list of the next request.
    private static func request(to phone: SocketStream) async throws -> String {
        let length = try await phone.receive(4).reduce(0) { $0 << 8 | Int($1) }
        return String(decoding: try await phone.receive(length), as: UTF8.self)
    }
}
