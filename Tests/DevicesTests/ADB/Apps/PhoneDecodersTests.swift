import Testing

@testable import Devices

/// The packets of a shell, the lists of processes and the table of sockets.
@Suite struct PhoneDecodersTests {
    @Test(arguments: [1, 3, 1_000])
    func `packets of a shell are split in any parts`(count: Int) {
        let bytes: [UInt8] = [
            1, 2, 0, 0, 0, 65, 66, 2, 1, 0, 0, 0, 67, 9, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 3, 1, 0, 0, 0, 7,
        ]
        var decoder = ShellPacketDecoder()
        let events = stride(from: 0, to: bytes.count, by: count).flatMap { start in
            decoder.read(Array(bytes[start..<min(start + count, bytes.count)]))
        }

        let output = events.flatMap { if case .output(let bytes) = $0 { bytes } else { [UInt8]() } }
        #expect(output == [65, 66])
        #expect(events.contains(.error([67])) && events.last == .exit(7))
    }

    @Test func `a packet of 4 GiB is passed on in parts`() {
        var decoder = ShellPacketDecoder()

        #expect(decoder.read([1, 0xFF, 0xFF, 0xFF, 0xFF, 65]) == [.output([65])])
        #expect(decoder.read([66, 67]) == [.output([66, 67])])
    }

    @Test func `a list of processes has their numbers`() {
        // Two processes: {pid 1234, debuggable, "arm64"} and {pid 4321, uid 10234}.
        let one: [UInt8] = [0x08, 0xD2, 0x09, 0x10, 0x01, 0x22, 0x05] + Array("arm64".utf8)
        let two: [UInt8] = [0x08, 0xE1, 0x21, 0x48, 0xFA, 0x4F]
        let list = [0x0A, UInt8(one.count)] + one + [0x0A, UInt8(two.count)] + two

        #expect(ProcessList.processIDs(in: list) == [1_234, 4_321])
        #expect(ProcessList.processIDs(in: []) == [])
    }

    @Test(
        arguments: [
            [0x0A], [0x0A, 0x05, 0x08], [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
            [0x0D, 0, 0, 0, 0],
            [0x0A, 0x02, 0x08, 0xFF],
        ] as [[UInt8]]
    )
    func `a damaged list of processes is refused`(list: [UInt8]) {
        #expect(ProcessList.processIDs(in: list) == nil)
    }

    private static let head =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"

    private func row(_ address: String, _ state: String = "0A", user: Int) -> String {
        "   0: \(address) 00000000:0000 \(state) 00000000:00000000 00:00000000 00000000 \(user)        0 4711 1 0 100 0 0 10 0"
    }

    @Test func `the listening ports have their users`() {
        let text = [
            Self.head, row("0100007F:2694", user: 10_234), row("00000000:1F90", user: 10_235),
            row("0000000000000000FFFF00000100007F:0050", user: 10_236),
            row("00000000000000000000000001000000:0051", user: 1),
            row("0100007F:2695", "01", user: 10_234), row("0201A8C0:2696", user: 10_234), "garbage",
            "process 10234 /proc/77",
            "process x /proc/78", "stat: /proc/79: No such file or directory",
        ].joined(separator: "\n")
        let sockets = PhoneSockets(Array(text.utf8))

        #expect(sockets.users == [9_876: 10_234, 8_080: 10_235, 80: 10_236, 81: 1])
        #expect(sockets.processes == [77: 10_234])
    }

    @Test func `a port of two users belongs to none`() {
        let rows = [row("0100007F:2694", user: 10_234), row("00000000000000000000000001000000:2694", user: 10_666)]

        #expect(PhoneSockets(Array(rows.joined(separator: "\n").utf8)).users == [:])
        #expect(PhoneSockets(Array((rows + [rows[0]]).joined(separator: "\n").utf8)).users == [:])
    }
}
