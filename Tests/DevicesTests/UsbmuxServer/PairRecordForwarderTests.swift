@testable import Devices
import FoundationEssentials
import Model
import Synchronization
import TestSupport
import Testing

@Suite struct PairRecordForwarderTests {
    /// A usbmuxd that answers every request, and records the requests.
    private final class FakeUsbmuxd: UsbmuxForwarder {
        let requests = Mutex<[String]>([])

        func forward(_ propertyList: [UInt8], for request: String) async throws -> UsbmuxMessage.Body {
            requests.withLock { $0.append(request) }
            return .propertyList(Array("answer".utf8))
        }
    }

    private let usbmuxd = FakeUsbmuxd()
    private let forwarder: PairRecordForwarder

    init() throws { forwarder = PairRecordForwarder(of: try #require(UDID(Phones.one)), usbmuxd: usbmuxd) }

    private static func propertyList(_ request: String, record: String? = nil) -> [UInt8] {
        let keys = record.map { "<key>PairRecordID</key><string>\($0)</string>" } ?? ""
        return Array(MuxMessage.request(request, keys).dropFirst(MuxMessage.headerSize))
    }

    @Test(arguments: ["ReadPairRecord", "SavePairRecord", "DeletePairRecord"])
    func `requests for the record of the phone are forwarded, and those for another phone are not`(
        request: String
    ) async throws {
        let own = try await forwarder.forward(Self.propertyList(request, record: Phones.one), for: request)
        let other = try await forwarder.forward(Self.propertyList(request, record: Phones.two), for: request)
        let unnamed = try await forwarder.forward(Self.propertyList(request), for: request)

        #expect(own == .propertyList(Array("answer".utf8)))
        #expect(other == .result(.badDevice) && unnamed == .result(.badDevice))
        #expect(usbmuxd.requests.withLock { $0 } == [request])
    }

    @Test func `the BUID is that of this machine, and any other request is unknown`() async throws {
        let buid = try await forwarder.forward(Self.propertyList("ReadBUID"), for: "ReadBUID")
        let unknown = try await forwarder.forward(Self.propertyList("Reset"), for: "Reset")

        #expect(buid == .propertyList(Array("answer".utf8)))
        #expect(unknown == .result(.badCommand))
        #expect(usbmuxd.requests.withLock { $0 } == ["ReadBUID"])
    }

    @Test func `without a usbmuxd on this machine, no client starts to pair`() async throws {
        let forwarder = PairRecordForwarder(of: try #require(UDID(Phones.one)), usbmuxd: nil)

        for request in ["ReadBUID", "ReadPairRecord", "SavePairRecord"] {
            let list = Self.propertyList(request, record: Phones.one)
            #expect(try await forwarder.forward(list, for: request) == .result(.refused))
        }
    }
}
