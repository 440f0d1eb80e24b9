import NIOCore
import NIOHPACK
import Testing

@testable import Team

@Suite struct GRPCTests {
    private static let head: HPACKHeaders = [":status": "200", "content-type": "application/grpc"]
    private static let ok: HPACKHeaders = ["grpc-status": "0"]

    @Test func `a message has a prefix of five bytes`() {
        #expect(Array(GRPCFrameDecoder.frame([7, 8]).readableBytesView) == [0, 0, 0, 0, 2, 7, 8])
    }

    @Test(arguments: 1...12) func `messages are found in parts of any size`(size: Int) throws {
        let messages: [[UInt8]] = [[1, 2, 3], [], [4], Array(repeating: 5, count: 300)]
        let bytes = messages.flatMap { Array(GRPCFrameDecoder.frame($0).readableBytesView) }
        var decoder = GRPCFrameDecoder()
        var found: [[UInt8]] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            decoder.append(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
            while let message = try decoder.next() { found.append(Array(message.readableBytesView)) }
        }
        #expect(found == messages)
        #expect(!decoder.hasRest)
    }

    @Test func `a compressed message is refused`() {
        var decoder = GRPCFrameDecoder()
        decoder.append(ByteBuffer(bytes: [1, 0, 0, 0, 0]))
        #expect(throws: EtcdError.self) { try decoder.next() }
    }

    @Test func `a message above the limit is refused before its bytes arrive`() {
        var decoder = GRPCFrameDecoder()
        decoder.append(ByteBuffer(bytes: [0, 0xff, 0xff, 0xff, 0xff]))
        #expect(throws: EtcdError.self) { try decoder.next() }
    }

    @Test func `a response has its status in the trailers`() throws {
        var reader = GRPCResponseReader()
        #expect(try reader.receive(Self.head, isLast: false) == [])
        #expect(try reader.receive(GRPCFrameDecoder.frame([9]), isLast: false) == [.message(ByteBuffer(bytes: [9]))])
        #expect(try reader.receive(Self.ok, isLast: true) == [.end(GRPCStatus(code: .ok))])
    }

    @Test func `a response without messages may have its status in the headers`() throws {
        var reader = GRPCResponseReader()
        let headers: HPACKHeaders = [":status": "200", "grpc-status": "7", "grpc-message": "no%3A entry"]
        let status = GRPCStatus(code: .permissionDenied, message: "no: entry")
        #expect(try reader.receive(headers, isLast: true) == [.end(status)])
    }

    @Test func `a response without a status is an error`() throws {
        var reader = GRPCResponseReader()
        _ = try reader.receive(Self.head, isLast: false)
        #expect(throws: EtcdError.self) { try reader.receive(ByteBuffer(), isLast: true) }
    }

    @Test func `a response that ends inside a message is an error`() throws {
        var reader = GRPCResponseReader()
        _ = try reader.receive(Self.head, isLast: false)
        _ = try reader.receive(ByteBuffer(bytes: [0, 0, 0]), isLast: false)
        #expect(throws: EtcdError.self) { try reader.receive(Self.ok, isLast: true) }
    }

    @Test func `a response of another server than gRPC is an error`() {
        var reader = GRPCResponseReader()
        #expect(throws: EtcdError.httpStatus("404")) { try reader.receive([":status": "404"], isLast: false) }
    }

    @Test(arguments: [("a%20b", "a b"), ("50%", "50%"), ("%zz", "%zz"), ("%C3%A9", "é"), ("", "")])
    func `the message of a status is percent-encoded`(text: String, message: String) {
        #expect(GRPCStatus(code: "2", message: text)?.message == message)
    }

    @Test(arguments: ["", "x", "-1"]) func `a status needs a number`(text: String) {
        #expect(GRPCStatus(code: text, message: nil) == nil)
    }
}
