import FoundationEssentials
import Testing

@testable import Devices

@Suite struct UsbmuxRequestTests {
    private struct Wire: Decodable {
        var MessageType: String
        var ProgName: String
        var ClientVersionString: String
        var kLibUSBMuxVersion: Int
        var DeviceID: Int?
        var PortNumber: Int?
    }

    private static func wire(_ request: UsbmuxRequest) throws -> Wire? {
        guard case .propertyList(let bytes) = try request.message(tag: 1).body else { return nil }
        try PropertyListValidator.check(bytes)
        return try PropertyListDecoder().decode(Wire.self, from: Data(bytes))
    }

    @Test func `the port of a Connect is in network order`() throws {
        let wire = try #require(try Self.wire(.connect(deviceID: 7, port: 62078)))

        #expect(wire.MessageType == "Connect")
        #expect(wire.DeviceID == 7)
        #expect(wire.PortNumber == 32498)
    }

    @Test(arguments: [("Listen", UsbmuxRequest.listen), ("ListDevices", .listDevices), ("ReadBUID", .readBUID)])
    func `other requests are a name and who asks`(name: String, request: UsbmuxRequest) throws {
        let wire = try #require(try Self.wire(request))

        #expect(wire.MessageType == name)
        #expect(wire.kLibUSBMuxVersion == 3)
        #expect(wire.ProgName == "patchbay")
        #expect(wire.DeviceID == nil)
    }
}
