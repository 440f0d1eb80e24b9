import Model
import SystemIO
import Testing

@testable import Devices

@Suite struct ADBHandshakeTests {
    private func evaluate(_ text: String) -> ConnectPlan.Handshake.Result {
        Array(text.utf8).withUnsafeBytes { ADBHandshake.evaluate($0) }
    }

    @Test func `the transport is selected first, and then the port or the name`() throws {
        let id = try #require(ADBTransportID("7"))
        let name = try #require(AbstractSocketName("chrome_devtools_remote"))
        func requests(_ socket: DeviceSocket) -> [String] {
            ADBHandshake.handshake(to: socket, over: id) { true }.requests.map { String(decoding: $0, as: UTF8.self) }
        }

        #expect(requests(.port(9_876)) == ["0013host:transport-id:7", "0008tcp:9876"])
        #expect(requests(.abstract(name)) == ["0013host:transport-id:7", "0024localabstract:chrome_devtools_remote"])
    }

    @Test func `an answer may come in pieces, and a byte after it belongs to the stream`() {
        #expect(evaluate("") == .incomplete)
        #expect(evaluate("OK") == .incomplete)
        #expect(evaluate("OKAY") == .accepted(length: 4))
        #expect(evaluate("OKAYhello") == .accepted(length: 4))
    }

    @Test func `a refusal has the server's reason`() {
        #expect(evaluate("FAIL0006clos") == .incomplete)
        #expect(evaluate("FAIL0006closed") == .failed(.refused(SanitizedText("closed"))))
        #expect(evaluate("FAIL0014device 'x' not found") == .failed(.refused(SanitizedText("device 'x' not found"))))
    }

    @Test(arguments: ["HTTP/1.1 400", "FAILzzzz", "okay"]) func `any other answer is a failure`(text: String) {
        #expect(evaluate(text) == .failed(.closed))
    }
}
