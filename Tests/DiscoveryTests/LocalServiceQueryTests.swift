import Testing

@testable import Discovery

@Suite struct LocalServiceQueryTests {
    private static let service = LocalService(
        key: ServiceKey(
            interface: 2,
            transport: 0,
            name: Array("Tools v1.0".utf8),
            type: "_flutter_devices._tcp",
            domain: "local"
        ),
        port: 8_181
    )

    /// A reply with one question and two records; the second one's name is a pointer.
    private static func reply(
        id: [UInt8] = [0x12, 0x34],
        flags: UInt8 = 0x84,
        code: UInt8 = 0,
        type: UInt8 = 33,
        port: UInt16 = 8_181
    )
        -> [UInt8]
    {
        let name: [UInt8] = [3] + Array("far".utf8) + [0]
        let address: [UInt8] = name + [0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4, 127, 0, 0, 1]
        let location: [UInt8] =
            [0xC0, 12, 0, type, 0, 1, 0, 0, 0, 120, 0, 11, 0, 0, 0, 0, UInt8(port >> 8), UInt8(port & 0xFF)] + name
        return id + [flags, code, 0, 1, 0, 2, 0, 0, 0, 0] + name + [0, 33, 0, 1] + address + location
    }

    private let query = LocalServiceQuery(for: service, id: 0x1234)

    @Test func `the question asks for the SRV record of the whole instance name, with a unicast answer`() {
        let labels: [[UInt8]] = ["Tools v1.0", "_flutter_devices", "_tcp", "local"].map { Array($0.utf8) }
        let name = Array(labels.map { [UInt8($0.count)] + $0 }.joined()) + [UInt8(0)]
        let head: [UInt8] = [0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]

        #expect(query.packet == head + name + [0, 33, 0x80, 1])
    }

    @Test func `an answer with the port confirms the service`() { #expect(query.isAnswered(by: Self.reply())) }

    @Test(arguments: [
        reply(id: [0x12, 0x35]), reply(flags: 0x04), [], reply(type: 16), reply(port: 8_182),
        // The response code 3: the name does not exist.
        reply(code: 3),
    ])
    func `another ID, a question, an error, another record and another port confirm nothing`(reply: [UInt8]) {
        #expect(!query.isAnswered(by: reply))
    }

    @Test func `an answer that is cut at any byte confirms nothing`() {
        let whole = Self.reply()
        for count in whole.indices { #expect(!query.isAnswered(by: Array(whole.prefix(count))), "\(count) bytes") }
    }
}
