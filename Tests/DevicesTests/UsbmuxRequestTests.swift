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

    private static func plist(of request: UsbmuxRequest) throws -> Wire? {
        guard case .propertyList(let bytes) = try request.message(tag: 1).body else { return nil }
        try PropertyListValidator.validate(bytes)
        return try PropertyListDecoder().decode(Wire.self, from: Data(bytes))
    }

    @Test func `the port of a Connect is in network byte order`() throws {
        let plist = try #require(try Self.plist(of: .connect(deviceID: 7, port: 62078)))

        #expect(plist.MessageType == "Connect")
        #expect(plist.DeviceID == 7)
        #expect(plist.PortNumber == 32498)
    }

    @Test(arguments: [("Listen", UsbmuxRequest.listen), ("ListDevices", .listDevices), ("ReadBUID", .readBUID)])
    func `other requests contain a name and the program`(name: String, request: UsbmuxRequest) throws {
        let plist = try #require(try Self.plist(of: request))

        #expect(plist.MessageType == name)
        #expect(plist.kLibUSBMuxVersion == 3)
        #expect(plist.ProgName == "patchbay")
        #expect(plist.DeviceID == nil)
    }
}
